"""Recognisers that behave, and that misbehave in the ways real ones do; they are loaded in the child process."""

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from utils.dataset.clip import Span
from utils.dataset.recognisers import RecogniserSpec, RecognitionError, Transcript, Word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from utils.media.audio import Samples


class Counting:
    """Says of each clip how many samples it has, in which language, and who counted on what."""

    def __init__(self, engine: RecogniserSpec) -> None:
        self.name = engine.name
        self.model = engine.model
        self.device = "cpu" if engine.device == "auto" else engine.device
        self.arithmetic = engine.compute_type

    def transcribe(self, clips: "Sequence[Samples]", language: str) -> list[Transcript]:
        said = f"{language} {self.device} {self.arithmetic}"
        return [Transcript(f"{clip.size} {said}", 0.5, (Word("ሰላም", Span(0.25, 0.5), 0.75),)) for clip in clips]


class Repeating(Counting):
    def transcribe(self, clips: "Sequence[Samples]", language: str) -> list[Transcript]:
        return [Transcript(repr(clip.tolist()), 1.0) for clip in clips if language]


class Chatty(Counting):
    """Prints where replies are expected."""

    def transcribe(self, clips: "Sequence[Samples]", language: str) -> list[Transcript]:
        sys.stdout.write('{"transcripts": []}\n')
        sys.stdout.flush()
        os.write(1, b"noise\n")
        return super().transcribe(clips, language)


class RaisingOnGpu(Counting):
    def transcribe(self, clips: "Sequence[Samples]", language: str) -> list[Transcript]:
        if self.device != "cpu":
            raise RuntimeError("cuDNN failed with status CUDNN_STATUS_EXECUTION_FAILED")
        return super().transcribe(clips, language)


class RaisingOnLoad(Counting):
    def __init__(self, engine: RecogniserSpec) -> None:
        super().__init__(engine)
        if self.device != "cpu":
            raise RuntimeError("CUDA driver version is insufficient for CUDA runtime version")


class CrashingOnGpu(Counting):
    def transcribe(self, clips: "Sequence[Samples]", language: str) -> list[Transcript]:
        if self.device != "cpu":
            sys.stderr.write("Could not load library libcudnn_ops.so.9\n\n")
            sys.stderr.flush()
            os.abort()
        return super().transcribe(clips, language)


class Sleeping(Counting):
    """Sleeps over its first call; the file that its model names says that there was one."""

    def transcribe(self, clips: "Sequence[Samples]", language: str) -> list[Transcript]:
        seen = Path(self.model)
        if not seen.exists():
            seen.touch()
            time.sleep(60)
        return super().transcribe(clips, language)


class Poisoned(Counting):
    """Dies of a clip of 13 samples."""

    def transcribe(self, clips: "Sequence[Samples]", language: str) -> list[Transcript]:
        if any(clip.size == 13 for clip in clips):
            os._exit(3)
        return super().transcribe(clips, language)


class Failing(Counting):
    """Fails in the way that the language names."""

    def transcribe(self, clips: "Sequence[Samples]", language: str) -> list[Transcript]:
        if language == "ours":
            raise RecognitionError("It knows only English.", hint="Choose another.")
        if language == "theirs":
            raise IndexError("list index out of range")
        return super().transcribe(clips[:-1] if language == "few" else clips, language)
