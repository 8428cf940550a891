"""What the tests have Ray do: apart from them, because its workers import it by name."""

import os
import signal
import time

from utils.core.errors import DataError
from utils.dataset.build import MadeClips, RecordingTask, make_clips
from utils.dataset.workers import ReportShare


def halfway(task: int, report: ReportShare) -> int:
    report(0.5)
    time.sleep(1.5)
    if task == 3:
        raise DataError("odd", hint="cure")
    return task * 10


def die_on_talk1(task: RecordingTask, report: ReportShare) -> MadeClips:
    if task.recording.path.name == "talk1.wav":
        os.kill(os.getpid(), signal.SIGKILL)
    return make_clips(task, report)
