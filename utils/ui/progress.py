"""How far a run is: one reducer of its newest events into named phases, and one renderer for every tab."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from utils.core import wording
from utils.core.events import Event, as_number
from utils.studio.run_state import State
from utils.studio.runs import ACTIVE, Run
from utils.ui import views
from utils.ui.html import html
from utils.ui.i18n import t

# The phases by kind of run, in order; the last one reports without naming itself.
PHASES = {
    "prepare": ("download", "find", "check_texts", "learn_voice", "prepare"),
    "train": ("text", "audio", "train"),
}
OPTIONAL = {"download", "check_texts", "learn_voice", "text", "audio"}  # are named once they are reached
EARLY_SHARE, EARLY_SECONDS = 10, 20  # before both of these, an estimate of the rest would be a guess


class Position(NamedTuple):
    """Where a run is now."""

    phase: str
    done: float = 0
    total: float = 0
    percent: float | None = None  # of the phase
    seconds_left: float | None = None


def position(verb: str, events: Sequence[Event]) -> Position:
    """Return the phase that the newest event is about; at the start that is the first one that every run has."""
    plan = PHASES.get(verb, (verb,))
    first = Position(next(name for name in plan if name not in OPTIONAL))
    event = next((event for event in reversed(events) if event["kind"] in {"progress", "fetched", "started"}), None)
    if event is None or event["kind"] == "started":
        return first
    name = "download" if event["kind"] == "fetched" else str(event.get("part") or plan[-1])
    now = _read(event, name if name in plan else plan[-1])
    is_over = now.phase != plan[-1] and now.total and now.done >= now.total
    return Position(plan[-1]) if is_over else now


def _read(event: Event, phase: str) -> Position:
    """Return how far a phase is, according to an event."""
    percent, left = (as_number(event.get(key)) for key in ("percent", "seconds_left"))
    done, total = (as_number(event.get(key)) or 0 for key in ("step", "total"))
    share = percent if percent is not None else 100 * done / total if total > 0 else None
    return Position(phase, done, total, share, left)


def estimate(state: State, now: Position) -> float | None:
    """Return how many seconds the rest will take, once that can be known."""
    is_early = (now.percent or 0) < EARLY_SHARE and time.time() - state.created < EARLY_SECONDS
    return None if state.status not in ACTIVE or is_early else now.seconds_left


def facts(run: Run, state: State, classes: str = "") -> str:
    """Show the head of a run and, until it has finished, its phases, if its state says of which kind it is."""
    has_phases = state.status not in {"finished", "unreadable"}
    return views.run_head(run, state, classes) + (phases(run, state) if has_phases else "")


def phases(run: Run, state: State) -> str:
    """Show the phases of a run, done, active and to come."""
    now = position(state.verb, views.newest_events(run))
    plan = [name for name in PHASES.get(state.verb, (state.verb,)) if name not in OPTIONAL or name == now.phase]
    share = "" if now.percent is None else f"{min(100.0, max(0.0, now.percent)):.0f}"
    return html("page.html", "phases", plan, plan.index(now.phase), _text(state, now), share, state.status)


def _text(state: State, now: Position) -> str:
    counted = t("common.step_of", step=f"{now.done:.0f}", total=f"{now.total:.0f}") if now.total else ""
    if state.verb != "train" and now.percent is not None:
        counted = f"{now.percent:.0f} %"
    if not counted and state.status in ACTIVE:
        counted = t("phases.starting")  # the libraries and the model are loaded
    return views.joined(counted, views.time_left(estimate(state, now)))


def brief(run: Run, state: State) -> tuple[str, float | None]:
    """Return how far a run is in a few words, and in percent."""
    now = position(state.verb, views.newest_events(run))
    share = "" if now.percent is None else f"{now.percent:.0f} %"
    left = round(estimate(state, now) or 0)
    doing = f"phases.{now.phase}" if now.phase != state.verb else f"status.{state.status}"  # its step has that name
    return views.joined(share or t(doing), wording.time(left) if left else ""), now.percent
