"""Events as people read them, on a terminal and in a log."""

import io
import time
from pathlib import Path

import pytest

from utils.core.events import Event
from utils.core.facts import Fact, to_json
from utils.dataset.facts import Bad, RecordingWarning
from utils.dataset.readers.facts import ListedAudioMissing
from utils.recognition.facts import Hum, NoiseFloor
from utils.studio.facts import Ended
from utils.studio.progress import CLEAR, EventPrinter, describe


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


TRAIN: Event = {"kind": "train", "step": 34, "loss": 2.4321, "samples_per_second": 7.412}
PROGRESS: Event = {"kind": "progress", "step": 34, "total": 42, "seconds_left": 8.2}
LINE = "step 34/42 · loss 2.43 · 7.41 clips/s · 8 s left"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        ({"kind": "started", "pid": 1}, ""),
        (TRAIN, ""),
        ({"kind": "evaluation", "step": 6, "loss": 2.0, "loss_without_ema": 3.0},
         "step 6 · evaluation loss 2.000 · without EMA 3.000"),
        ({"kind": "ended", "status": "finished", "message": ""}, "Finished."),
        ({"kind": "ended", "status": "failed", "message": "The disk is full."}, "Failed: The disk is full."),
        ({"kind": "warning", "message": "Slow."}, "Warning: Slow."),
        ({"kind": "clips", "split": "train", "used": 3, "aside": 1}, "train clips: 3 used, 1 excluded"),
        ({"kind": "clips", "split": "train"}, "clips split=train"),  # of another version
        ({"kind": "new", "value": 3}, "new value=3"),
    ],
)  # fmt: skip
def test_an_event_is_one_line_for_people(event: Event, line: str) -> None:
    assert describe(event) == line


def test_a_terminal_has_one_line_of_progress_below_the_others() -> None:
    stream = Terminal()
    printer = EventPrinter(stream)
    warning: Event = {"kind": "warning", "message": "Slow."}
    for event in (TRAIN, PROGRESS, warning):
        printer(event)
    printer.close()
    assert stream.getvalue() == f"{CLEAR}{LINE}{CLEAR}Warning: Slow.\n{LINE}\n"


def test_a_log_has_plain_lines_every_ten_seconds_and_the_last() -> None:
    stream, start = io.StringIO(), time.time()
    printer = EventPrinter(stream)
    for step in range(43):
        printer({**PROGRESS, "step": step, "time": start + step / 2})
    steps = [line.split(" · ")[0] for line in stream.getvalue().splitlines()]
    assert steps == ["step 0/42", "step 20/42", "step 40/42", "step 42/42"]


def printed(*facts: Fact) -> list[str]:
    """Return the lines of a log of these facts."""
    stream = io.StringIO()
    printer = EventPrinter(stream)
    for fact in facts:
        printer({"time": 0.0, **to_json(fact)})
    printer.close()
    return stream.getvalue().splitlines()


NOISY = [RecordingWarning(Path(f"{number}.wav"), NoiseFloor(decibels=20.0)) for number in range(5)]


def test_of_many_recordings_with_the_same_warning_three_are_named() -> None:
    lines = printed(*NOISY, RecordingWarning(Path("5.wav"), Hum(hertz=50.0, decibels=10.0)), Ended("finished"))
    assert [line.split(":")[1].strip() for line in lines[:4]] == ["0.wav", "1.wav", "2.wav", "5.wav"]
    assert lines[4].startswith("2 more warnings like these")
    assert lines[5:] == ["Finished."]


def test_of_many_files_that_cannot_be_used_twenty_are_named() -> None:
    missing = (ListedAudioMissing(number, f"{number}.wav", "no_file") for number in range(25))
    lines = printed(*(Bad(Path("texts.csv"), reason) for reason in missing))
    assert all(f"{number}.wav" in line for number, line in enumerate(lines[:20]))
    assert lines[20].startswith("5 more warnings")


def test_a_run_without_an_end_tells_how_many_warnings_were_only_counted() -> None:
    assert printed(*NOISY)[3].startswith("2 more warnings")
