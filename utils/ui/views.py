"""HTML of the shared parts of the page, made from plain values; does not import gradio.

Titles, labels, hints, messages and cells may be the ids of phrases instead of texts.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from markupsafe import Markup

from utils.core import wording
from utils.core.events import Event, as_number, read_events, read_tail, tail_offset
from utils.core.facts import Progress, Unrecognised, from_json
from utils.core.monitor import MachineReading
from utils.core.wording import describe
from utils.studio.progress import describe as describe_event
from utils.studio.run_state import State
from utils.studio.runs import ACTIVE, Run, Status
from utils.system.doctor import Finding
from utils.training.facts import Scores
from utils.ui.html import html, text_of
from utils.ui.i18n import describe_error, t

Kind = Literal["success", "warning", "error"]  # of a message; the class of its box

SIGNS = {"fail": "✗", "warn": "!", "pass": "✓"}  # the worst first; a verdict must not rely on colour alone
MAX_SECONDS = 1e9  # longer durations come from a damaged log
TAIL_BYTES = 65_536  # holds the newest event, whatever the size of the log
LOG_BYTES, LOG_LINES = 32_768, 60
LITTLE_DISK = 5.0  # GiB


def table(titles: Sequence[str], rows: Iterable[Iterable[str]], *, classes: str = "") -> str:
    """Return a table of texts, or of what ``cell`` and ``html_cell`` return."""
    shown = ["".join(each if isinstance(each, Markup) else cell(each) for each in row) for row in rows]
    return html("views.html", "table", titles, shown, classes)


def cell(text: str, *, classes: str = "") -> Markup:
    """Return a cell with a class."""
    return Markup(element("td", text=text_of(text), class_=classes))  # noqa: S704  # the template escapes the text


def html_cell(content: str) -> Markup:
    return Markup(element("td", content))  # noqa: S704


def joined(*parts: str) -> str:
    """Return in one line what is known."""
    return " · ".join(filter(None, parts))


def loss(value: float) -> str:
    """Return a loss, with as many digits as in the log and in the chart."""
    return f"{value:.3f}"


def checkpoint(step: int | None, evaluated: float | None = None) -> str:
    """Return the step of a checkpoint and how well it did, as far as they are known."""
    return joined(
        f"{t('common.step')} {step}" if step else "",
        "" if evaluated is None else t("common.evaluation_loss", loss=loss(evaluated)),
    )


def note(text: str) -> str:
    """Return a hint; nothing for an empty text."""
    return element("p", text=text_of(text), class_="hint") if text else ""


def message_box(kind: Kind, *sentences: str, aloud: bool = True) -> str:
    """Return a box with sentences; nothing without any.

    Screen readers announce it, unless ``aloud`` is off for what is refreshed while a run is active.
    """
    said = [sentence for sentence in sentences if sentence]
    role = ("alert" if kind == "error" else "status") if aloud else ""
    return html("views.html", "message", kind, said, role) if said else ""


def element(tag: str, content: str = "", /, *, text: str = "", **values: object) -> str:
    """Return an element of some HTML, or of a text, with attributes."""
    return html("views.html", "element", tag, attributes(**values), text or Markup(content))  # noqa: S704


def check(name: str, label: str, hint: str = "", **options: object) -> str:
    """Return a box to tick."""
    return html("views.html", "check", attributes(name=name, **options), label, hint)


def boxes(checks: Iterable[str]) -> str:
    """Return boxes to tick in a list that scrolls."""
    return element("div", "".join(checks), class_="scroll boxes", tabindex="0")


def code(text: str, classes: str = "command") -> str:
    return element("pre", text=text, class_=f"scroll {classes}", tabindex="0")


def error_box(error: BaseException) -> str:
    return message_box("error", describe_error(error))


def details(title: str, content: str, elem_id: str = "") -> str:
    """Return HTML that is collapsed behind its title; with an id, a panel keeps it open."""
    return element("details", element("summary", text=text_of(title)) + content, class_="fold", id=elem_id)


def attributes(**values: object) -> str:
    """Return attributes of an HTML element; True is empty. None, False and "" (unless of a base) are left out."""
    parts = (
        f'{name.rstrip("_").replace("_", "-")}="{escape("" if value is True else str(value))}"'
        for name, value in values.items()
        if value is not None and value is not False and (value != "" or name.endswith("_base"))
    )
    return " ".join(parts)


def button(action: str, label: str, style: str = "", aria_label: str = "", key: str = "", **data: object) -> str:
    """Return a button of a panel (``page.Panel``), which sends its action and data.

    ``style`` is primary, stop or quiet; ``key`` is the key that presses it. With ``confirm`` that question is asked
    first.
    """
    named = {f"data_{name}": value for name, value in data.items()}
    if data.get("confirm"):
        named["data_cancel"] = t("common.cancel")
    return html("views.html", "button", attributes(data_act=action, aria_label=aria_label, **named), style, label, key)


def buttons(*labels: str) -> str:
    """Return a button for each label, whose id ends in the name of the action."""
    return "".join(button(label.rpartition(".")[2], label) for label in labels)


def field(label: str, control: str, hint: str = "") -> str:
    return html("views.html", "field", label, control, hint)


def text_field(name: str, label: str, hint: str = "", **options: object) -> str:
    """Return a labelled input of a panel."""
    shown = attributes(name=name, **{"type": "text", **options})
    return field(label, html("views.html", "input", shown), hint)


def text_area(name: str, label: str, hint: str, value: str, key: str, **options: object) -> str:
    """Return a labelled box for longer text: filled anew when ``key`` changes, or ``value`` before it was edited."""
    shown = {"name": name, "rows": 2, "data_act": "draft", "data_key": key, "data_value": value} | options
    return field(label, element("textarea", text=value, **shown), hint)


def conflict(name: str, stored: str, save: str, **data: str) -> str:
    """Return the text that another tab has stored, and a button for each of the two."""
    mine = button(save, "common.keep_mine", **{f"{name}_base": stored}, **data)
    theirs = button("use_stored", "common.use_stored", **data)
    return message_box("warning", "common.changed_elsewhere", stored or "–") + row(mine, theirs)


def select_field(
    name: str, label: str, choices: Iterable[tuple[str, str]], hint: str = "", chosen: str = "", **options: object
) -> str:
    """Return a labelled choice of a panel, from (label, value)."""
    items = [(text, attributes(value=value, selected=value == chosen)) for text, value in choices]
    return field(label, html("views.html", "select", attributes(name=name, **options), items), hint)


def row(*parts: str) -> str:
    """Return parts side by side; nothing without any."""
    return element("div", "".join(parts), class_="line") if any(parts) else ""


def progress(sentence: str, done: float = 0, total: int = 0) -> str:
    """Show progress, with a bar if the total is known; screen readers do not announce each update."""
    label = text_of(sentence)
    return note(label) + (element("progress", max=total, value=f"{done:.0f}", aria_label=label) if total else "")


def timed_progress(sentence: str, seconds: float, done: int = 0, total: int = 0) -> str:
    """Show progress with how long the rest will take, or without a total for how long it has been running."""
    left = seconds * (total - done) / done if done else None
    when = time_left(left) if total else wording.time(seconds)
    return progress(joined(sentence, when), done, total)


def file_url(path: Path) -> str:
    """Return the URL of a file of a project; a changed file gets another URL."""
    try:
        version = f"?v={path.stat().st_mtime_ns}"
    except FileNotFoundError:  # deleted at this moment
        version = ""
    return f"gradio_api/file={quote(path.as_posix())}{version}"


def hear(path: Path, label: str, text: str = "") -> str:
    """Return a button that plays a file: small, and without the 0:00 of a player that has loaded nothing."""
    shown = attributes(data_hear=file_url(path), aria_label=text_of(label))
    return html("views.html", "button", shown, "hear", text)


def downloads(links: Iterable[tuple[Path, str]]) -> str:
    """Show links to files, given as (path, label)."""
    files = (element("a", text=label, href=file_url(path), download=path.name) for path, label in links)
    return element("div", "".join(files), class_="downloads")


def time_left(seconds: object) -> str:
    """Return the remaining time as a phrase; nothing when it is unknown or over."""
    known = round(as_number(seconds) or 0)
    return t("common.time_left", time=wording.time(known)) if 0 < known <= MAX_SECONDS else ""


def cards(values: Mapping[str, str]) -> str:
    """Return labelled values in one line that wraps."""
    return html("views.html", "cards", values) if values else ""


def findings(found: Sequence[Finding]) -> str:
    """Return the findings of the doctor as a table, the worst first."""
    rows = []
    for finding in sorted(found, key=lambda finding: [*SIGNS].index(finding.verdict)):
        verdict = f"{SIGNS[finding.verdict]} {t(f'verdict.{finding.verdict}')}"
        rows.append((cell(verdict, classes=f"mark {finding.verdict}"), finding.name, finding.detail, finding.cure))
    return table(("common.verdict", "common.check", "common.finding", "common.cure"), rows, classes="stack")


def run_actions(status: Status) -> list[str]:
    """Return what can be done with a run of this status."""
    if status in ACTIVE:
        return ["stop_and_save", "stop_now"]
    return ["delete"] if status in {"queued", "finished", "unreadable"} else ["resume", "delete"]


def run_title(run: Run) -> str:
    """Return what the person called a run, else when it was created."""
    return run.title if run.note else when_of(run.name)


def when_of(name: str) -> str:
    """Return when something that is named by its time was made; any other name stays as it is."""
    try:
        when = datetime.strptime(name[:15], "%Y%m%d-%H%M%S")  # noqa: DTZ007  # local, as runs are named
    except ValueError:
        return name
    return f"{t(f'weekday.{when.weekday()}')} {when:%d/%m %H:%M:%S}"


def verdict(phrase: str, kind: str, more: str = "") -> str:
    return element("p", element("b", text=t(phrase), class_=kind) + escape(more))


def run_head(run: Run, state: State, classes: str) -> str:
    kind: Kind = "error" if state.status in {"failed", "unreadable"} else "warning"
    head = verdict(f"status.{state.status}", classes or state.status, f" · {run_title(run)}")
    return head + message_box(kind, state.reason(), aloud=False)


def newest_events(run: Run, size: int = TAIL_BYTES) -> Sequence[Event]:
    """Return the events in the last bytes of a log, whatever the size of the whole."""
    return read_events(run.events, tail_offset(run.events, size), size).events


def newest_progress(run: Run) -> Progress:
    """Return how far a run is, as it reported last."""
    facts = map(from_json, reversed(newest_events(run)))
    return next((fact for fact in facts if isinstance(fact, Progress)), Progress())


def log(run: Run) -> str:
    """Return the newest events as sentences, followed by the end of the run's output."""
    found = newest_events(run, LOG_BYTES)
    events = [event for event in found if event.get("part") or event["kind"] not in {"progress", "fetched"}]
    lines = [clock(event) + line for event in events[-LOG_LINES:] if (line := event_line(event))]
    return "\n\n".join(filter(None, ("\n".join(lines), read_tail(run.log).strip())))


def event_line(event: Event) -> str:
    """Return an event as a sentence."""
    fact = from_json(event)
    if isinstance(fact, Progress) and not fact.part:
        return t("common.step_of", step=fact.step, total=fact.total)
    is_old = isinstance(fact, (Unrecognised, Scores)) or event.get("message")  # of version 1.1, or with gaps
    return describe_event(event) if is_old else describe(fact)


def clock(event: Event) -> str:
    """Return the time of day; nothing for a time that no calendar has."""
    when = as_number(event.get("time"))
    try:
        return "" if when is None else datetime.fromtimestamp(when).strftime("%H:%M:%S ")  # noqa: DTZ006
    except (OverflowError, OSError, ValueError):
        return ""


def readings(reading: MachineReading) -> str:
    def used_of(used: float | None, total: float | None) -> str:
        return t("common.used_of_total", used=gib(used).removesuffix(" GiB"), total=gib(total))

    gpu = t("common.none")
    if reading.gpu_name is not None:
        percent = "" if reading.gpu_percent is None else f" · {reading.gpu_percent:.0f} %"
        gpu = f"{reading.gpu_name} · {used_of(reading.gpu_memory_used_gib, reading.gpu_memory_total_gib)}{percent}"
    parts = {
        "common.gpu": gpu,
        "common.memory": used_of(reading.ram_used_gib, reading.ram_total_gib),
        "common.app_memory": gib(reading.process_ram_gib),
        "common.processor": f"{reading.cpu_percent:.0f} %",
        "common.disk": t("common.free", free=gib(reading.disk_free_gib)),
    }
    is_short = reading.disk_free_gib is not None and reading.disk_free_gib < LITTLE_DISK
    state = "doubt" if is_short else "ok"
    content = element("i") + cards(parts)
    label = t("system.this_computer")
    return element("div", content, class_=f"pulse {state}", tabindex=0, role="group", aria_label=label)


def gib(size: float | None) -> str:
    """Return a size; a dash where it is unknown."""
    return "–" if size is None else f"{size:.1f} GiB"


def gigabytes(size: int) -> str:
    """Return a size; a dash for nothing."""
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB" if size else "–"
