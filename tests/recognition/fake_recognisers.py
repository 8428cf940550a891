"""Recognisers that fail in the ways real ones do; they are loaded in the child process."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

from utils.media.audio import Samples
from utils.recognition.facts import RecogniserError
from utils.recognition.recognisers import RecogniserSpec, Transcript


class Counting:
    """Transcribes each clip as its number of samples, the language, and what it runs on."""

    def __init__(self, spec: RecogniserSpec) -> None:
        os.write(1, b"a line that a library prints\n")
        self.name, self.spec = spec.name, spec
        self.device = "cpu" if spec.device == "auto" else spec.device

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:
        return [Transcript(f"{clip.size} {language} {self.device} {self.spec.compute_type}", 0.5) for clip in clips]


class Failing(Counting):
    """Fails in the way that the language names."""

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:
        if language == "crash":
            os._exit(3)
        if language == "ours":
            raise RecogniserError("tiny", "english_only")
        if language == "theirs":
            raise IndexError("list index out of range")
        return super().transcribe(clips[:-1] if language == "few" else clips, language)


class FailingOnGpu(Counting):
    """Fails on a GPU in the way that its model names."""

    def __init__(self, spec: RecogniserSpec) -> None:
        super().__init__(spec)
        if self.device == "cuda" and spec.model == "load":
            raise RuntimeError("CUDA driver version is insufficient for CUDA runtime version")

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:
        if self.device == "cuda" and self.spec.model == "crash":
            os.write(2, b"Could not load library libcudnn_ops.so.9\n\n")
            os.abort()
        if self.device == "cuda":
            raise RuntimeError("cuDNN failed with status CUDNN_STATUS_EXECUTION_FAILED")
        return super().transcribe(clips, language)


class Sleeping(Counting):
    """Sleeps over its first request, and creates the file that its model names."""

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:
        if not Path(self.spec.model).exists():
            Path(self.spec.model).touch()
            time.sleep(60)
        return super().transcribe(clips, language)
