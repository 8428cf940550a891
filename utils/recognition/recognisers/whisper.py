"""Whisper, run by faster-whisper in batches of clips."""

import difflib
import math
from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from utils.core import languages
from utils.media.audio import Samples
from utils.recognition.facts import RecogniserError
from utils.recognition.recognisers import MIN_SAMPLES, RATE, RecogniserSpec, Transcript, model_download

WINDOW_SECONDS = 30  # Whisper drops the rest
MIN_SPLIT_SAMPLES = 4 * RATE  # the speech of a shorter clip cannot fill Whisper's output
PAUSE_SAMPLES = RATE // 50  # over which loudness is measured to find a pause
FILES = ("model.bin", "config.json", "tokenizer.json")  # without the last one, faster-whisper downloads it


class Whisper:
    """A Whisper model: a size, the hub name of a converted model, or the folder of one."""

    def __init__(self, spec: RecogniserSpec) -> None:
        import ctranslate2
        from faster_whisper import BatchedInferencePipeline, WhisperModel

        self.name = spec.name
        self.device: str = spec.device
        if spec.device == "auto":
            self.device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
        if self.device == "cuda":
            import torch  # noqa: F401  # loads its cuBLAS and cuDNN, which CTranslate2 then finds by name
        possible = sorted(ctranslate2.get_supported_compute_types(self.device))
        compute_type = spec.compute_type
        if compute_type == "auto":  # the fastest
            fastest = "int8" if self.device == "cpu" else "float16"
            compute_type = fastest if fastest in possible else "default"
        if compute_type not in {*possible, "default"}:
            raise RecogniserError(self.name, "number_format", ", ".join(possible))
        self._model = WhisperModel(str(_model_folder(spec.model)), device=self.device, compute_type=compute_type)
        expected = self._model.model.n_mels
        actual = self._model.feature_extractor.mel_filters.shape[0]
        if expected != actual:
            raise RecogniserError(spec.model, "mel_bands", f"{expected} / {actual}")
        self._pipeline = BatchedInferencePipeline(self._model)

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:
        """Transcribe clips of up to 30 s; if memory runs out, in batches of half the size."""
        check_lengths(clips, self.name)
        code = languages.find(language).whisper_code  # None makes Whisper detect a language that it does not know
        if not self._model.model.is_multilingual and code != "en":
            raise RecogniserError(self.name, "english_only")
        try:
            return self._batch(clips, code) if clips else []
        except RuntimeError as error:
            if "out of memory" not in str(error) or len(clips) == 1:
                raise
        middle = len(clips) // 2
        return [*self.transcribe(clips[:middle], language), *self.transcribe(clips[middle:], language)]

    def _batch(self, clips: Sequence[Samples], code: str | None) -> list[Transcript]:
        """Transcribe the clips one after the other in one array, as the pipeline takes a batch."""
        sizes = [max(clip.size, MIN_SAMPLES) for clip in clips]
        borders = [0, *accumulate(sizes)]
        seconds = [(border + 0.5) / RATE for border in borders]  # half a sample more, because the pipeline rounds down
        segments, _ = self._pipeline.transcribe(
            np.concatenate([np.pad(clip, (0, size - clip.size)) for clip, size in zip(clips, sizes, strict=True)]),
            language=code,
            clip_timestamps=[{"start": start, "end": end} for start, end in pairwise(seconds)],
            batch_size=len(clips),
        )
        by_seek = {seek: list(group) for seek, group in groupby(segments, key=lambda segment: segment.seek)}
        seeks = (int(start / RATE * 100) for start in borders)  # hundredths of a second, rounded as the pipeline does
        return [self._transcript(by_seek.get(seek, []), clip, code) for seek, clip in zip(seeks, clips, strict=False)]

    def _transcript(self, segments: Sequence[Any], clip: Samples, code: str | None) -> Transcript:
        """Join segments; a clip whose text fills the output, as Amharic easily does, is transcribed in halves."""
        full = sum(len(segment.tokens) for segment in segments) >= self._model.max_length // 2 - 1
        if full and clip.size > MIN_SPLIT_SAMPLES:
            return self._in_halves(clip, code)
        text = "".join(segment.text for segment in segments).strip()
        return Transcript(text, 0.0 if full or not text else math.exp(min(0.0, segments[0].avg_logprob)))

    def _in_halves(self, clip: Samples, code: str | None) -> Transcript:
        """Split a clip in its middle half, where the surroundings are quietest."""
        quarter = clip.size // 4
        power = np.convolve(np.square(clip[quarter:-quarter]), np.ones(PAUSE_SAMPLES, np.float32), "valid")
        middle = quarter + PAUSE_SAMPLES // 2 + int(power.argmin())
        first, second = self._batch([clip[:middle], clip[middle:]], code)
        return Transcript(f"{first.text} {second.text}".strip(), min(first.confidence, second.confidence))


def check_lengths(clips: Sequence[Samples], name: str) -> None:
    longest = max((clip.size for clip in clips), default=0) / RATE
    if longest > WINDOW_SECONDS:
        raise RecogniserError(name, "too_long", f"{longest:.1f}")


def _model_folder(model: str) -> Path:
    """Return the folder of a converted Whisper model; a size or a hub name is downloaded."""
    from faster_whisper.utils import available_models, download_model

    folder = Path(model)
    if folder.is_dir():
        missing = [name for name in FILES if not (folder / name).is_file()]
        if missing:
            raise RecogniserError(model, "incomplete", ", ".join(missing))
        return folder
    sizes = available_models()
    if model not in sizes and (model.count("/") != 1 or model.startswith((".", "/", "~"))):
        near = difflib.get_close_matches(model, sizes, n=1)
        raise RecogniserError(model, "unknown", ", ".join(near or sizes))
    with model_download(model):
        return Path(download_model(model))
