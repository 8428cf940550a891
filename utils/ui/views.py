"""What the page shows, as text and HTML made from plain facts; knows nothing of gradio."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from utils.doctor import Finding
from utils.events import Event, event_line, read_events, read_tail, tail_offset
from utils.monitor import Reading
from utils.runs import ACTIVE, Run, State, Status
from utils.ui.words import say

SIGNS = {"pass": "✓", "warn": "!", "fail": "✗"}  # a verdict is never told by colour alone
LAST_BYTES = 65_536  # enough for the newest event, whatever the size of the log

BUSY = "The run is at work; stop it first."
IDLE = "The run is not at work."


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
    """Build one quiet sentence."""
    return f'<p class="hint">{escape(text)}</p>'


def findings(found: Sequence[Finding], language: str) -> str:
    """Show what the doctor found, the worst first."""
    order = list(reversed(SIGNS))
    rows = [
        (
            cell(f"{SIGNS[finding.verdict]} {say(finding.verdict, language)}", classes=f"mark {finding.verdict}"),
            cell(finding.name),
            cell(finding.detail),
            cell(finding.cure),
        )
        for finding in sorted(found, key=lambda finding: order.index(finding.verdict))
    ]
    titles = [say(title, language) for title in ("Verdict", "Check", "Finding", "Cure")]
    return table(titles, rows, classes="stack")


@dataclass(frozen=True)
class Abilities:
    """Why each action on a run cannot be taken now; empty when it can."""

    stop: str = ""
    resume: str = ""
    delete: str = ""


ABILITIES: Mapping[Status, Abilities] = {
    **{status: Abilities(resume=BUSY, delete=BUSY) for status in ACTIVE},
    **{status: Abilities(stop=IDLE) for status in (Status.STOPPED, Status.FAILED, Status.LOST)},
    Status.FINISHED: Abilities(stop=IDLE, resume="The run is finished."),
    Status.UNREADABLE: Abilities(stop=IDLE, resume="Its state cannot be read; it can only be deleted."),
}
NOTHING_CHOSEN = Abilities(*["Choose a run first."] * 3)


def run_choices(found: Iterable[Run], language: str) -> list[tuple[str, str]]:
    """List runs as (what a person sees, name)."""
    return [(f"{run.name} · {say(run.look().status, language)}", run.name) for run in found]


def run_facts(run: Run, state: State, language: str) -> str:
    """Show the state of a run, its progress and the last thing that it told."""
    status = f'<b class="{state.status}">{escape(say(state.status, language))}</b>'
    event = last_event(run)
    told = f"<p>{escape(say('Last event', language))}: {escape(event_line(event))}</p>" if event else ""
    return f"<p>{status} · {escape(run.name)} {escape(state.message)}</p>{progress(event)}{told}"


def progress(event: Event | None) -> str:
    """Show how far a run is, where its last event says so."""
    step, total = (event or {}).get("step"), (event or {}).get("total")
    if not isinstance(step, int) or not isinstance(total, int) or total < 1:
        return ""
    return f'<progress max="{total}" value="{step}" aria-label="{step} / {total}"></progress>'


def last_event(run: Run) -> Event | None:
    """Return the newest event of a run without reading its whole log."""
    events = read_events(run.events, tail_offset(run.events, LAST_BYTES), LAST_BYTES).events
    return events[-1] if events else None


def log_tail(run: Run) -> str:
    """Return the end of what a run printed."""
    return read_tail(run.log)


def reasons(abilities: Abilities, language: str) -> str:
    """Say why the disabled buttons are disabled, each reason once."""
    labels: dict[str, list[str]] = {}
    for reason, *names in (
        (abilities.stop, "Stop and save", "Stop now"),
        (abilities.resume, "Resume"),
        (abilities.delete, "Delete"),
    ):
        labels.setdefault(reason, []).extend(say(name, language) for name in names)
    labels.pop("", None)
    if len(labels) == 1 and abilities == NOTHING_CHOSEN:
        return note(say(NOTHING_CHOSEN.stop, language))
    return "".join(note(f"{', '.join(names)}: {say(reason, language)}") for reason, names in labels.items())


def readings(reading: Reading, language: str) -> str:
    """Show what this computer is doing, in one line that wraps."""
    parts = {
        "Graphics card": graphics(reading, language),
        "Memory": used_of(reading.ram_used_gib, reading.ram_total_gib, language),
        "This page": gib(reading.process_ram_gib),
        "Processor": f"{reading.cpu_percent:.0f} %",
        "Disk": say("{free} free", language, free=gib(reading.disk_free_gib)),
    }
    cards = (
        f"<span><small>{escape(say(name, language))}</small><b>{escape(value)}</b></span>"
        for name, value in parts.items()
    )
    return f'<div class="cards">{"".join(cards)}</div>'


def graphics(reading: Reading, language: str) -> str:
    """Show name, memory and load of the graphics card, as far as it tells them."""
    if reading.gpu_name is None:
        return say("none", language)
    percent = "" if reading.gpu_percent is None else f" · {reading.gpu_percent:.0f} %"
    memory = used_of(reading.gpu_memory_used_gib, reading.gpu_memory_total_gib, language)
    return f"{reading.gpu_name} · {memory}{percent}"


def used_of(used: float | None, total: float | None, language: str) -> str:
    """Show a share of memory."""
    return say("{used} of {total}", language, used=gib(used).removesuffix(" GiB"), total=gib(total))


def gib(size: float | None) -> str:
    """Show a size; a dash where it cannot be had."""
    return "–" if size is None else f"{size:.1f} GiB"
