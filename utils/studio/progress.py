"""Events as lines for people: one line that is rewritten on a terminal, plain lines in a log."""

import shutil
from collections import Counter
from typing import TextIO

from utils.core import wording
from utils.core.events import Event, as_number, format_event
from utils.core.facts import Unrecognised, from_json
from utils.dataset.facts import Bad, RecordingWarning
from utils.studio.facts import Ended, MoreWarnings
from utils.training.facts import Evaluation, Scores

CLEAR = "\r\033[K"
SHOWN_ALIKE = 3  # recordings with the same warning; the others are counted
SHOWN_UNUSED = 20  # files that cannot be used for the same reason
LOG_SECONDS = 10.0  # between progress lines where a line cannot be rewritten
HIDDEN = {"started", "train", "optimization", "loading", "failed"}  # shown as part of other lines, or in log.txt only
FORMATS: dict[str, str] = {  # other kinds have a message, or are formatted as they are
    "warning": "Warning: {message}",
    "problem": "Problem: {message}",
}


def describe(event: Event) -> str:
    """Return an event as one line for people; empty for what only programs need."""
    kind = str(event["kind"])
    if kind in HIDDEN:
        return ""
    fact = from_json(event)
    if isinstance(fact, (Unrecognised, Evaluation, Scores)) or event.get("message"):  # the last of version 1.1
        return _describe_untyped(event, kind)
    return f"Warning: {wording.describe(fact)}" if fact.level == "warning" else wording.describe(fact)


def _after_step(event: Event, shown: list[str]) -> str:
    return " · ".join([f"step {event.get('step')}", *shown])


def _describe_untyped(event: Event, kind: str) -> str:
    if kind == "evaluation":
        names = {
            "loss": "evaluation loss",
            "loss_without_ema": "without EMA",
            "loss_other_languages": "other languages",
        }
        shown = [f"{name} {value:.3f}" for key, name in names.items() if (value := as_number(event.get(key)))]
        return _after_step(event, shown)
    if kind == "scores":
        named = {name: as_number(event[name]) for name in event if name not in {"time", "kind", "step"}}
        shown = [f"{name} {value:.2f}" for name, value in named.items() if value is not None]
        return _after_step(event, shown)
    if kind == "ended":
        status = str(event.get("status")).capitalize()
        message = str(event.get("message") or "")
        return f"{status}: {message}" if status == "Failed" else message or f"{status}."
    try:
        return FORMATS.get(kind, "{message}").format(**event).strip() or format_event(event)
    except KeyError:  # of another version, or of a command that formats its events itself
        return format_event(event)


def describe_progress(event: Event, train: Event | None = None) -> str:
    """Return a line such as ``step 34/42 · loss 2.43 · 7.4 clips/s · 8 s left``, with the newest training event."""
    parts = [f"{wording.phase(str(event.get('part') or 'step'))} {event.get('step')}/{event.get('total')}"]
    if (percent := as_number(event.get("percent"))) is not None:
        parts.append(f"{percent:.0f} %")
    if train and not event.get("part"):
        loss = as_number(train.get("loss"))
        speed = as_number(train.get("samples_per_second"))
        parts += [f"loss {loss:.2f}"] if loss is not None else []
        parts += [f"{speed:.3g} clips/s"] if speed is not None else []
    if (left := as_number(event.get("seconds_left"))) is not None:
        parts.append(f"{wording.time(round(left))} left")
    return " · ".join(parts)


class EventPrinter:
    """Prints the events of a run as they come: all of them, or only progress, warnings and the end."""

    def __init__(self, stream: TextIO, *, everything: bool = True) -> None:
        self.stream = stream
        self.everything = everything
        self.is_terminal = stream.isatty()
        self._train: Event | None = None
        self._printed = 0.0
        self._line = ""
        self._warned: Counter[str] = Counter()
        self._others = 0

    def __call__(self, event: Event) -> None:
        if event["kind"] == "train":
            self._train = event
        if event["kind"] == "progress":
            self._print_progress(event)
        elif self.everything or event["kind"] in {"warning", "ended"} or event.get("level") == "warning":
            if event["kind"] == Ended.kind:
                self._print_number_of_others()
            if not self._has_enough_alike(event):
                self.print(describe(event))

    def print(self, line: str) -> None:
        """Print a line above the progress."""
        if not line:
            return
        self.stream.write(f"{CLEAR if self._line else ''}{line}\n{self._line}")
        self.stream.flush()

    def close(self) -> None:
        """Print what was only counted, and leave the last progress on the terminal."""
        self._print_number_of_others()
        if self._line:
            self.stream.write("\n")
            self._line = ""

    def _has_enough_alike(self, event: Event) -> bool:
        """Count a warning about a file, and tell whether one like it was printed often enough."""
        fact = from_json(event)
        if isinstance(fact, RecordingWarning):
            kind, shown = fact.about.kind, SHOWN_ALIKE
        elif isinstance(fact, Bad):
            kind, shown = type(fact.reason).__name__, SHOWN_UNUSED
        else:
            return False
        self._warned[kind] += 1
        is_enough = self._warned[kind] > shown
        self._others += is_enough
        return is_enough

    def _print_number_of_others(self) -> None:
        if self._others:
            self.print(wording.describe(MoreWarnings(self._others)))
        self._warned.clear()
        self._others = 0

    def _print_progress(self, event: Event) -> None:
        line = describe_progress(event, self._train)
        is_last = event.get("step") == event.get("total")
        if self.is_terminal:
            self._line = line[: shutil.get_terminal_size().columns - 1]
            self.stream.write(f"{CLEAR}{self._line}")
        elif is_last or (as_number(event.get("time")) or 0.0) >= self._printed + LOG_SECONDS:
            self._printed = as_number(event.get("time")) or 0.0
            self.stream.write(f"{line}\n")
        self.stream.flush()
