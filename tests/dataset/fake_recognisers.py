"""Recognisers that behave, and that misbehave in the ways real ones do; they are loaded in the child process."""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from utils.dataset.clip import Span
from utils.dataset.recognisers import RecogniserSpec, RecognitionError, Transcript, Word
from utils.media.audio import Samples


class Counting:
    """Transcribes each clip as its number of samples, the language, and what it runs on."""

    def __init__(self, spec: RecogniserSpec) -> None:
        self.name, self.model, self.compute_type = spec.name, spec.model, spec.compute_type
        self.device = "cpu" if spec.device == "auto" else spec.device

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:
        self.misbehave()
        runs_on = f"{language} {self.device} {self.compute_type}"
        return [Transcript(f"{clip.size} {runs_on}", 0.5, (Word("ሰላም", Span(0.25, 0.5), 0.75),)) for clip in clips]

    def misbehave(self) -> None:
        """Do what the subclass is about."""


class Repeating(Counting):
    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:
        transcripts = super().transcribe(clips, language)
        return [replace(item, text=repr(clip.tolist())) for item, clip in zip(transcripts, clips, strict=True)]


class Chatty(Counting):
    def misbehave(self) -> None:
        sys.stdout.write('{"transcripts": []}\n')
        sys.stdout.flush()
        os.write(1, b"noise\n")


class RaisingOnGpu(Counting):
    def misbehave(self) -> None:
        if self.device != "cpu":
            raise RuntimeError("cuDNN failed with status CUDNN_STATUS_EXECUTION_FAILED")


class RaisingOnLoad(Counting):
    def __init__(self, spec: RecogniserSpec) -> None:
        super().__init__(spec)
        if self.device != "cpu":
            raise RuntimeError("CUDA driver version is insufficient for CUDA runtime version")


class CrashingOnGpu(Counting):
    def misbehave(self) -> None:
        if self.device != "cpu":
            sys.stderr.write("Could not load library libcudnn_ops.so.9\n\n")
            sys.stderr.flush()
            os.abort()


class Sleeping(Counting):
    """Sleeps over its first call, which creates the file that its model names."""

    def misbehave(self) -> None:
        if not Path(self.model).exists():
            Path(self.model).touch()
            time.sleep(60)


class Poisoned(Counting):
    """Dies of a clip of 13 samples."""

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:
        if any(clip.size == 13 for clip in clips):
            os._exit(3)
        return super().transcribe(clips, language)


class Failing(Counting):
    """Fails in the way that the language names."""

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:
        if language == "ours":
            raise RecognitionError("It knows only English.", hint="Choose another.")
        if language == "theirs":
            raise IndexError("list index out of range")
        return super().transcribe(clips[:-1] if language == "few" else clips, language)
