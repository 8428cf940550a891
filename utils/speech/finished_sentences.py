"""Sentences of a long text that are already spoken, on disk, so that an interrupted book continues."""

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from utils.config import SpeechConfig
from utils.core.storage import atomic_writer, make_folder
from utils.speech.types import Sentence, Utterance


class FinishedSentences:
    """Keeps spoken sentences in a hidden folder beside the audio file that they will become.

    Args:
        out: The audio file.
        model: Fingerprint of the model.
        voice: Key of the voice.
        config: Settings of the speech; a sentence spoken with others is spoken again.
    """

    def __init__(self, out: Path, model: str, voice: str, config: SpeechConfig) -> None:
        self.folder = out.with_name(f".{out.name}.parts")
        self.key = f"{model}|{voice}|{config.model_dump_json()}"

    def _path(self, sentence: Sentence) -> Path:
        content = f"{self.key}|{sentence.seed}|{sentence.max_codes}|{sentence.tokenized.model_text}"
        return self.folder / f"{hashlib.sha256(content.encode()).hexdigest()[:24]}.npz"

    def __contains__(self, sentence: Sentence) -> bool:
        return self._path(sentence).is_file()

    def add(self, sentence: Sentence, utterance: Utterance) -> None:
        """Store an utterance; ``sentence`` is what was planned, while a retry was spoken with another seed."""
        make_folder(self.folder)
        with atomic_writer(self._path(sentence)) as file:
            np.savez(
                file,
                samples=utterance.samples,
                codes=utterance.codes,
                flags=np.array(utterance.flags, str),
                numbers=np.array([utterance.sentence.seed, utterance.tries, utterance.ended]),
            )

    def load(self, sentence: Sentence) -> Utterance:
        with np.load(self._path(sentence)) as stored:
            seed, tries, ended = map(int, stored["numbers"])
            flags = tuple(map(str, stored["flags"]))
            spoken = replace(sentence, seed=seed)
            return Utterance(spoken, stored["samples"], stored["codes"], bool(ended), flags, tries)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
