"""Whisper run by transformers: for fine-tuned models that are not converted, and for GPUs without cuBLAS of CUDA 12."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from utils.core import languages
from utils.dataset.recognisers import (
    MIN_SAMPLES,
    RATE,
    RecogniserSpec,
    RecognitionError,
    Transcript,
    model_download,
    torch_placement,
)
from utils.dataset.recognisers.whisper import WINDOW_SECONDS
from utils.media.audio import Samples


class TransformersWhisper:
    """A Whisper model of transformers: a hub name or a folder."""

    def __init__(self, spec: RecogniserSpec) -> None:
        from transformers import WhisperForConditionalGeneration, WhisperProcessor

        self.name = spec.name
        self.device, self._dtype = torch_placement(spec)
        processor: Any = WhisperProcessor  # untyped
        with model_download(spec.model):
            self._processor = processor.from_pretrained(spec.model)
            model: Any = WhisperForConditionalGeneration.from_pretrained(spec.model, dtype=self._dtype)
        self._model = model.to(self.device).eval()

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:
        """Transcribe clips of up to 30 s one at a time, so that none depends on its neighbours."""
        longest = max((clip.size for clip in clips), default=0) / RATE
        if longest > WINDOW_SECONDS:
            raise RecognitionError(
                f"A clip of {longest:.1f} s is too long for {self.name}; the maximum is {WINDOW_SECONDS} s."
            )
        code = languages.find(language).whisper_code
        return [self._transcript(clip, code) for clip in clips]

    def _transcript(self, clip: Samples, code: str | None) -> Transcript:
        import torch

        padded = np.pad(clip, (0, max(0, MIN_SAMPLES - clip.size)))
        inputs = self._processor(padded, sampling_rate=RATE, return_tensors="pt", return_attention_mask=True)
        inputs = inputs.to(self.device, self._dtype)
        chosen = {"task": "transcribe", "language": code}  # without a language, Whisper detects it
        if not hasattr(self._model.generation_config, "task_to_id"):  # models tuned with old versions have none
            chosen = {}
        with torch.inference_mode():
            made = self._model.generate(**inputs, **chosen, return_dict_in_generate=True, output_scores=True)
            scores = self._model.compute_transition_scores(made.sequences, made.scores, normalize_logits=True)
        text = self._processor.batch_decode(made.sequences, skip_special_tokens=True)[0].strip()
        likely = scores[0][torch.isfinite(scores[0])]
        return Transcript(text, float(likely.mean().exp()) if text and likely.numel() else 0.0)
