"""CTC models of transformers, such as w2v-BERT and MMS: the recogniser, or a second opinion."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
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
from utils.media.audio import Samples

Frame = tuple[str, float]  # the most likely symbol of one frame, and its probability


class Ctc:
    """A CTC model: a hub name or a folder, with weights for one language or an adapter for each."""

    def __init__(self, spec: RecogniserSpec) -> None:
        from huggingface_hub import hf_hub_download
        from transformers import AutoModelForCTC, AutoProcessor

        self.name = spec.name
        self.device, self._dtype = torch_placement(spec)
        with model_download(spec.model):
            if not Path(spec.model).is_dir():
                hf_hub_download(spec.model, "config.json")  # fails at once, where transformers retries for minutes
            processor: Any = AutoProcessor  # untyped
            self._processor = processor.from_pretrained(spec.model, trust_remote_code=False)
            model: Any = AutoModelForCTC.from_pretrained(spec.model, trust_remote_code=False, dtype=self._dtype)
        self._model = model.to(self.device).eval()
        self._adapter = ""

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:
        """Transcribe clips one at a time, so that none depends on its neighbours."""
        self._set_language(language)
        return [self._transcript(clip) for clip in clips]

    def _transcript(self, clip: Samples) -> Transcript:
        import torch

        padded = np.pad(clip, (0, max(0, MIN_SAMPLES - clip.size)))
        values = self._processor(padded, sampling_rate=RATE, return_tensors="pt").to(self.device, self._dtype)
        with torch.inference_mode():
            best = self._model(**values).logits[0].float().softmax(-1).max(-1)
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
            reason = str(error).partition("\n")[0]
            raise RecognitionError(f"{self.name} cannot be set to {known.name} ({code}): {reason}") from error
        self._adapter = code


def merge_frames(frames: Iterable[Frame]) -> Transcript:
    """Merge repeated symbols, drop blanks, which are empty, and split at spaces."""
    runs = [(symbol, max(map(itemgetter(1), run))) for symbol, run in groupby(frames, itemgetter(0)) if symbol]
    words = [list(run) for is_space, run in groupby(runs, lambda letter: letter[0].isspace()) if not is_space]
    text = " ".join("".join(symbol for symbol, _ in word) for word in words)
    by_word = [np.mean([probability for _, probability in word]) for word in words]
    return Transcript(text, float(np.mean(by_word)) if words else 0.0)
