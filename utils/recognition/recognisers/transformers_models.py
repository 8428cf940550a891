"""Recognisers run by transformers: CTC models such as w2v-BERT and MMS, and Whisper where CTranslate2 cannot run it."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch

from utils.core import languages
from utils.core.errors import first_line
from utils.media.audio import Samples
from utils.recognition.facts import RecogniserError
from utils.recognition.recognisers import MIN_SAMPLES, RATE, RecogniserSpec, Transcript, model_download
from utils.recognition.recognisers.whisper import check_lengths

FORMATS = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}  # int8 is for CTranslate2

Frame = tuple[str, float]  # the most likely symbol of one frame, and its probability


class TransformersModel:
    """A model and its processor: a hub name or a folder. Both classes are those of transformers."""

    def __init__(self, spec: RecogniserSpec, processor: Any, model: Any) -> None:  # noqa: ANN401  # untyped
        from huggingface_hub import hf_hub_download

        self.name = spec.name
        self.device: str = spec.device
        if spec.device == "auto":
            self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self._dtype = FORMATS.get(spec.compute_type, torch.float16 if self.device == "cuda" else torch.float32)
        with model_download(spec.model):
            if not Path(spec.model).is_dir():
                hf_hub_download(spec.model, "config.json")  # fails at once, where transformers retries for minutes
            self._processor = processor.from_pretrained(spec.model, trust_remote_code=False)
            loaded = model.from_pretrained(spec.model, trust_remote_code=False, dtype=self._dtype)
        self._model = loaded.to(self.device).eval()

    def _inputs(self, clip: Samples, **options: object) -> Any:  # noqa: ANN401  # untyped
        padded = np.pad(clip, (0, max(0, MIN_SAMPLES - clip.size)))
        inputs = self._processor(padded, sampling_rate=RATE, return_tensors="pt", **options)
        return inputs.to(self.device, self._dtype)


class Ctc(TransformersModel):
    """A CTC model, with weights for one language or an adapter for each."""

    def __init__(self, spec: RecogniserSpec) -> None:
        from transformers import AutoModelForCTC, AutoProcessor

        super().__init__(spec, AutoProcessor, AutoModelForCTC)
        self._adapter = ""

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:
        """Transcribe clips one at a time, so that none depends on its neighbours."""
        self._set_language(language)
        return [self._transcript(clip) for clip in clips]

    def _transcript(self, clip: Samples) -> Transcript:
        with torch.inference_mode():
            best = self._model(**self._inputs(clip)).logits[0].float().softmax(-1).max(-1)
        tokenizer = self._processor.tokenizer
        space = getattr(tokenizer, "word_delimiter_token", None) or "|"
        silent = {tokenizer.pad_token, *tokenizer.all_special_tokens} - {space}
        letters = (
            "" if symbol in silent else symbol.replace(space, " ")
            for symbol in tokenizer.convert_ids_to_tokens(best.indices.tolist())
        )
        return merge_frames(zip(letters, best.values.tolist(), strict=True))

    def _set_language(self, language: str) -> None:
        """Load the adapter of a language, named by three letters, if the model has adapters."""
        if getattr(self._model.config, "adapter_attn_dim", None) is None:
            return
        known = languages.find(language)
        code = next((name for name in (known.code, *known.aliases) if len(name) == 3), known.code)
        if code == self._adapter:
            return
        try:
            self._processor.tokenizer.set_target_lang(code)
            self._model.load_adapter(code)
        except (OSError, ValueError) as error:
            reason = f"{known.name} ({code}): {first_line(error)}"
            raise RecogniserError(self.name, "no_adapter", reason) from error
        self._adapter = code


def merge_frames(frames: Iterable[Frame]) -> Transcript:
    """Merge repeated symbols, drop blanks, which are empty, and split at spaces."""
    runs = [(symbol, max(map(itemgetter(1), run))) for symbol, run in groupby(frames, itemgetter(0)) if symbol]
    words = [list(run) for is_space, run in groupby(runs, lambda letter: letter[0].isspace()) if not is_space]
    text = " ".join("".join(symbol for symbol, _ in word) for word in words)
    by_word = [np.mean([probability for _, probability in word]) for word in words]
    return Transcript(text, float(np.mean(by_word)) if words else 0.0)


class TransformersWhisper(TransformersModel):
    """Whisper: for fine-tuned models that are not converted, and for GPUs without the cuBLAS of CUDA 12."""

    def __init__(self, spec: RecogniserSpec) -> None:
        from transformers import WhisperForConditionalGeneration, WhisperProcessor

        super().__init__(spec, WhisperProcessor, WhisperForConditionalGeneration)

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:
        """Transcribe clips of up to 30 s one at a time, so that none depends on its neighbours."""
        check_lengths(clips, self.name)
        code = languages.find(language).whisper_code
        return [self._transcript(clip, code) for clip in clips]

    def _transcript(self, clip: Samples, code: str | None) -> Transcript:
        inputs = self._inputs(clip, return_attention_mask=True)
        chosen = {"task": "transcribe", "language": code}  # without a language, Whisper detects it
        if not hasattr(self._model.generation_config, "task_to_id"):  # models tuned with old versions have none
            chosen = {}
        with torch.inference_mode():
            made = self._model.generate(**inputs, **chosen, return_dict_in_generate=True, output_scores=True)
            scores = self._model.compute_transition_scores(made.sequences, made.scores, normalize_logits=True)
        text = self._processor.batch_decode(made.sequences, skip_special_tokens=True)[0].strip()
        likely = scores[0][torch.isfinite(scores[0])]
        return Transcript(text, float(likely.mean().exp()) if text and likely.numel() else 0.0)
