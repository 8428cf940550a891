"""What the page shows, as text and HTML made from plain facts; knows nothing of gradio."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from html import escape
from typing import Literal

from utils.core.events import Event, as_integer, as_number, format_event, read_events, read_tail, tail_offset
from utils.runs import ACTIVE, Run, State, Status
from utils.runs.monitor import Reading
from utils.system.doctor import Finding
from utils.ui import error_text
from utils.ui.i18n import t

Kind = Literal["success", "warning", "error"]  # of what is told; the class of its box

SIGNS = {"pass": "✓", "warn": "!", "fail": "✗"}  # a verdict is never told by colour alone
MOST_SECONDS = 1e9  # that something may last; a damaged log says more than a clock can show
LAST_BYTES = 65_536  # enough for the newest event, whatever the size of the log

BUSY = "common.run_is_running"
IDLE = "common.run_is_not_running"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, classes: str = "") -> str:
    """Build a table from cells that are HTML already."""
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    body = "".join("<tr>" + "".join(row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0"><table class="facts {classes}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def cell(text: str, *, classes: str = "") -> str:
    """Build one cell from plain text."""
    return f'<td class="{classes}">{escape(text)}</td>' if classes else f"<td>{escape(text)}</td>"


def note(text: str) -> str:
    """Build one quiet sentence; nothing for none."""
    return f'<p class="hint">{escape(text)}</p>' if text else ""


def message_box(kind: Kind, *sentences: str, aloud: bool = True) -> str:
    """Show sentences one below the other, marked at their side; nothing for none.

    Args:
        kind: What they are.
        sentences: In the language of the page.
        aloud: Whether a screen reader says them at once; not for what is shown anew while a run is at work.
    """
    lines = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences if sentence)
    role = f' role="{"alert" if kind == "error" else "status"}"' if aloud else ""
    return f'<div class="message {kind}"{role}>{lines}</div>' if lines else ""


def error_box(error: BaseException, language: str) -> str:
    """Show why something could not be done, with its cure."""
    return message_box("error", error_text.describe(error, language))


def message_list(kind: Kind, title: str, sentences: Iterable[str]) -> str:
    """Show sentences as a list, marked at its side."""
    head = f"<p><b>{escape(title)}</b></p>" if title else ""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f'<div class="message {kind}">{head}<ul>{items}</ul></div>'


def details(title: str, content: str) -> str:
    """Fold HTML away behind its title."""
    return f'<details class="more"><summary>{escape(title)}</summary>{content}</details>'


def progress_bar(words: str, done: float, total: int) -> str:
    """Build a bar that says its words to those who cannot see it."""
    return f'<progress max="{max(1, total)}" value="{done:.0f}" aria-label="{escape(words)}"></progress>'


def progress(words: str, done: float, total: int) -> str:
    """Say how far something is, and show it as a bar."""
    return note(words) + progress_bar(words, done, total)


def time_left(seconds: object, language: str) -> str:
    """Say how long something takes still; nothing where nobody knows."""
    known = as_number(seconds)
    if known is None or abs(known) > MOST_SECONDS:
        return ""
    return t("common.time_left", language, time=timedelta(seconds=round(known)))


def cards(values: Mapping[str, str], language: str) -> str:
    """Show names with their values in one line that wraps; nothing for none."""
    shown = (
        f"<span><small>{escape(t(name, language))}</small><b>{escape(value)}</b></span>"
        for name, value in values.items()
    )
    return f'<div class="cards">{"".join(shown)}</div>' if values else ""


def disabled_reasons(why: Mapping[str, str], language: str) -> str:
    """Say why buttons are disabled: each reason once, behind the buttons that it holds for.

    Args:
        why: The reason by the label of the button; empty when it can be used.
        language: Of the page.
    """
    buttons: dict[str, list[str]] = {}
    for label, reason in why.items():
        buttons.setdefault(reason, []).append(t(label, language))
    if len(buttons) == 1:  # the same holds for all of them
        return note(t(next(iter(buttons)), language))
    buttons.pop("", None)
    return "".join(note(f"{', '.join(labels)}: {t(reason, language)}") for reason, labels in buttons.items())


def findings(found: Sequence[Finding], language: str) -> str:
    """Show what the doctor found, the worst first."""
    order = list(reversed(SIGNS))
    rows = [
        (
            cell(
                f"{SIGNS[finding.verdict]} {t(f'verdict.{finding.verdict}', language)}",
                classes=f"mark {finding.verdict}",
            ),
            cell(finding.name),
            cell(finding.detail),
            cell(finding.cure),
        )
        for finding in sorted(found, key=lambda finding: order.index(finding.verdict))
    ]
    titles = [t(title, language) for title in ("common.verdict", "common.check", "common.finding", "common.cure")]
    return table(titles, rows, classes="stack")


@dataclass(frozen=True)
class Abilities:
    """Why each action on a run cannot be taken now; empty when it can."""

    stop: str = ""
    resume: str = ""
    delete: str = ""

    @property
    def named(self) -> dict[str, str]:
        """Return the reasons by the label of the button."""
        return {
            "common.stop_and_save": self.stop,
            "common.stop_now": self.stop,
            "common.resume": self.resume,
            "common.delete": self.delete,
        }


ABILITIES: Mapping[Status, Abilities] = {
    **{status: Abilities(resume=BUSY, delete=BUSY) for status in ACTIVE},
    **{status: Abilities(stop=IDLE) for status in (Status.STOPPED, Status.FAILED, Status.LOST)},
    Status.FINISHED: Abilities(stop=IDLE, resume="common.run_is_finished"),
    Status.UNREADABLE: Abilities(stop=IDLE, resume="common.run_unreadable"),
}
NOTHING_CHOSEN = Abilities(*["common.choose_run_first"] * 3)


def run_choices(found: Iterable[Run], language: str) -> list[tuple[str, str]]:
    """List runs as (what a person sees, name)."""
    return [(f"{run.name} · {t(f'status.{run.current_state().status}', language)}", run.name) for run in found]


def run_head(run: Run, state: State, language: str) -> str:
    """Show the state of a run, its name, and what it says of itself."""
    status = f'<b class="{state.status}">{escape(t(f"status.{state.status}", language))}</b>'
    return f"<p>{status} · {escape(run.name)} {escape(state.message)}</p>"


def run_facts(run: Run, state: State, language: str) -> str:
    """Show the state of a run, its progress and the last thing that it told."""
    event = last_event(run)
    last = f"<p>{escape(t('common.last_event', language))}: {escape(format_event(event))}</p>" if event else ""
    return run_head(run, state, language) + _event_bar(event) + last


def _event_bar(event: Event | None) -> str:
    """Show how far a run is, where its last event says so."""
    step, total = (as_integer((event or {}).get(name)) for name in ("step", "total"))
    if step is None or total is None or total < 1:
        return ""
    return progress_bar(f"{step} / {total}", step, total)


def newest_events(run: Run, size: int = LAST_BYTES) -> Sequence[Event]:
    """Return the events in the last bytes of a log, whatever the size of the whole."""
    return read_events(run.events, tail_offset(run.events, size), size).events


def last_event(run: Run) -> Event | None:
    """Return the newest event of a run."""
    return next(reversed(newest_events(run)), None)


def log_tail(run: Run) -> str:
    """Return the end of what a run printed."""
    return read_tail(run.log)


def readings(reading: Reading, language: str) -> str:
    """Show what this computer is doing, in one line that wraps."""
    parts = {
        "common.gpu": graphics(reading, language),
        "common.memory": used_of(reading.ram_used_gib, reading.ram_total_gib, language),
        "common.app_memory": gib(reading.process_ram_gib),
        "common.processor": f"{reading.cpu_percent:.0f} %",
        "common.disk": t("common.free", language, free=gib(reading.disk_free_gib)),
    }
    return cards(parts, language)


def graphics(reading: Reading, language: str) -> str:
    """Show name, memory and load of the graphics card, as far as it tells them."""
    if reading.gpu_name is None:
        return t("common.none", language)
    percent = "" if reading.gpu_percent is None else f" · {reading.gpu_percent:.0f} %"
    memory = used_of(reading.gpu_memory_used_gib, reading.gpu_memory_total_gib, language)
    return f"{reading.gpu_name} · {memory}{percent}"


def used_of(used: float | None, total: float | None, language: str) -> str:
    """Show a share of memory."""
    return t("common.used_of_total", language, used=gib(used).removesuffix(" GiB"), total=gib(total))


def gib(size: float | None) -> str:
    """Show a size; a dash where it cannot be had."""
    return "–" if size is None else f"{size:.1f} GiB"
