"""Whisper by faster-whisper, several clips at a time."""

import difflib
import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from utils.core import languages
from utils.dataset.recognisers import RATE, RecogniserSpec, RecognitionError, Transcript, clamped_word, model_download
from utils.media.audio import Samples

WINDOW_SECONDS = 30  # what Whisper hears at a time; it drops the rest
SHORTEST = RATE // 10  # samples; a shorter clip is followed by silence
SHORTEST_HALVED = 4 * RATE  # samples; nobody says in less what fills Whisper's output
QUIET = RATE // 50  # samples over which loudness is measured to find a pause
FILES = ("model.bin", "config.json", "tokenizer.json")  # without the last one, faster-whisper goes to the internet


class Whisper:
    """Whisper by faster-whisper.

    Args:
        engine: Its model is a size, the hub name of a converted model, or the folder of one.
    """

    def __init__(self, engine: RecogniserSpec) -> None:
        from faster_whisper import BatchedInferencePipeline, WhisperModel

        self.name = engine.name
        self.device = _device(engine.device)
        arithmetic = _compute_type(engine.compute_type, self.device)
        self._model = WhisperModel(str(model_folder(engine.model)), device=self.device, compute_type=arithmetic)
        self._refuse_other_bands(engine.model)
        self._pipeline = BatchedInferencePipeline(self._model)

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:
        """Return what is said in each clip of up to 30 s; half of them at a time when the memory is too small."""
        longest = max((clip.size for clip in clips), default=0) / RATE
        if longest > WINDOW_SECONDS:
            raise RecognitionError(f"A clip of {longest:.1f} s is too long: {self.name} hears {WINDOW_SECONDS} s.")
        code = self._code(language)
        try:
            return self._batch(clips, code) if clips else []
        except RuntimeError as error:
            if "out of memory" not in str(error) or len(clips) == 1:
                raise
        middle = len(clips) // 2
        return [*self.transcribe(clips[:middle], language), *self.transcribe(clips[middle:], language)]

    def _batch(self, clips: Sequence[Samples], code: str | None) -> list[Transcript]:
        """Put the clips one behind the other, which is how the pipeline takes several."""
        sizes = [max(clip.size, SHORTEST) for clip in clips]
        starts: list[int] = np.cumsum([0, *sizes[:-1]]).tolist()
        padded = [np.pad(clip, (0, size - clip.size)) for clip, size in zip(clips, sizes, strict=True)]
        spans = zip(starts, sizes, strict=True)
        segments, _ = self._pipeline.transcribe(
            np.concatenate(padded),
            language=code,
            # half a sample more, because the pipeline rounds down
            clip_timestamps=[{"start": (at + 0.5) / RATE, "end": (at + size + 0.5) / RATE} for at, size in spans],
            batch_size=len(clips),
            word_timestamps=True,
        )
        found = {seek: list(group) for seek, group in groupby(segments, key=lambda segment: segment.seek)}
        seeks = [int(start / RATE * 100) for start in starts]  # hundredths of a second, rounded as the pipeline does
        return [
            self._said(found.get(seek, []), seek / 100, clip, code) for seek, clip in zip(seeks, clips, strict=True)
        ]

    def _said(self, segments: Sequence[Any], start: float, clip: Samples, code: str | None) -> Transcript:
        """Put segments together; a clip whose text fills the output (Amharic takes much of it) is heard in halves."""
        full = sum(len(segment.tokens) for segment in segments) >= self._model.max_length // 2 - 1
        if full and clip.size > SHORTEST_HALVED:
            middle = _quietest(clip)
            first, second = self._batch([clip[:middle], clip[middle:]], code)
            return _joined(first, second, middle / RATE, clip)
        text = "".join(segment.text for segment in segments).strip()
        heard = [word for segment in segments for word in segment.words if word.word.strip()]
        words = (
            clamped_word(word.word, word.start - start, word.end - start, word.probability, clip) for word in heard
        )
        confidence = 0.0 if full or not text else math.exp(min(0.0, segments[0].avg_logprob))
        return Transcript(text, confidence, tuple(words))

    def _code(self, language: str) -> str | None:
        """Return what Whisper calls a language; None lets it guess one that it does not know."""
        code = languages.find(language).whisper_code
        if not self._model.model.is_multilingual and code != "en":
            raise RecognitionError(f"{self.name} knows only English.", hint="Choose a size without .en, as large-v3.")
        return code

    def _refuse_other_bands(self, model: str) -> None:
        """Refuse a folder whose preprocessor_config.json is missing or of another model."""
        wanted, given = self._model.model.n_mels, self._model.feature_extractor.mel_filters.shape[0]
        if wanted != given:
            raise RecognitionError(
                f"{model}: this model hears {wanted} frequency bands, and its preprocessor_config.json says {given}.",
                hint=_conversion(model),
            )


def model_folder(model: str) -> Path:
    """Return the folder of a converted Whisper model, downloaded when it is a size or a hub name."""
    from faster_whisper.utils import available_models, download_model

    folder = Path(model).expanduser()
    if folder.is_dir():
        missing = [name for name in FILES if not (folder / name).is_file()]
        if missing:
            raise RecognitionError(f"{model} holds no {' and no '.join(missing)}.", hint=_conversion(model))
        return folder
    sizes = available_models()
    if model not in sizes and (model.count("/") != 1 or model.startswith((".", "/", "~"))):
        near = difflib.get_close_matches(model, sizes, n=1)
        hint = (f"Did you mean {near[0]}? " if near else "") + f"Sizes: {', '.join(sizes)}."
        raise RecognitionError(f"No Whisper model is called {model!r}, and there is no such folder.", hint=hint)
    with model_download(model):
        return Path(download_model(model))


def _conversion(model: str) -> str:
    return (
        f"Convert the original with: ct2-transformers-converter --model {model} --output_dir NEW_FOLDER "
        "--copy_files tokenizer.json preprocessor_config.json --quantization float16."
    )


def _device(wanted: str) -> str:
    import ctranslate2

    if wanted != "auto":
        return wanted
    return "cuda" if ctranslate2.get_cuda_device_count() else "cpu"


def _compute_type(wanted: str, device: str) -> str:
    """Choose the arithmetic: on a CPU int8 is fastest, on a GPU float16 is fast and loses nothing."""
    import ctranslate2

    possible = sorted(ctranslate2.get_supported_compute_types(device))
    if wanted == "auto":
        best = "int8" if device == "cpu" else "float16"
        return best if best in possible else "default"
    if wanted not in {*possible, "default"}:
        raise RecognitionError(f"This {device} cannot compute in {wanted}.", hint=f"It can in {', '.join(possible)}.")
    return wanted


def _quietest(clip: Samples) -> int:
    """Return the sample in the middle half of a clip around which it is most silent."""
    quarter = clip.size // 4
    power = np.convolve(np.square(clip[quarter:-quarter]), np.ones(QUIET, np.float32), "valid")
    return quarter + QUIET // 2 + int(power.argmin())


def _joined(first: Transcript, second: Transcript, middle: float, clip: Samples) -> Transcript:
    """Put the transcripts of the two parts of a clip together."""
    later = (
        clamped_word(word.text, middle + word.span.start, middle + word.span.end, word.confidence, clip)
        for word in second.words
    )
    text = f"{first.text} {second.text}".strip()
    return Transcript(text, min(first.confidence, second.confidence), (*first.words, *later))
