"""What the tab shows of a run, made from its history; does not import gradio."""

from datetime import datetime
from html import escape
from pathlib import Path
from urllib.parse import quote

from utils.core.events import Event, as_number, format_event, read_tail
from utils.runs import ACTIVE, Run, State
from utils.ui.i18n import t
from utils.ui.tabs.training.run_history import RunHistory, Sample
from utils.ui.views import cards, cell, details, message_list, newest_events, note, progress, run_head, table, time_left

OPEN_STEPS = 2  # whose samples are shown expanded
MAX_STEPS = 30
LOG_BYTES, LOG_LINES = 32_768, 60

CSS = """
.samples audio { width: 100%; max-width: 420px; height: 40px; display: block; }
.samples h4, .samples summary { font-size: var(--text-sm); font-weight: 600; margin: 10px 0 4px; }
.samples p { margin: 6px 0 2px; overflow-wrap: anywhere; }
.hint.effect b { color: #047857; } .dark .hint.effect b { color: #6ee7b7; }
"""

# The charts: title, and the label of each curve by its name in the history.
CHARTS = {
    "training.loss_audio": {"loss_audio": "common.training", "eval_audio": "common.evaluation"},
    "training.loss_text": {"loss_text": "common.training", "eval_text": "common.evaluation"},
    "training.evaluation_loss": {"eval": "common.evaluation", "eval_raw": "training.without_ema"},
    "training.learning_rate": {"rate": "training.learning_rate"},
    "training.speed": {"speed": "training.clips_per_second"},
    "training.memory_gib": {"memory": "training.memory_gib"},
}

ChartRow = tuple[float, float, str]  # step, value, label of the curve


def facts(run: Run, state: State, history: RunHistory, language: str) -> str:
    """Return the state of a run, its progress and its newest figures."""
    active = state.status in ACTIVE
    return (
        run_head(run, state, language)
        + run_progress(history, active=active, language=language)
        + figures(history, language)
    )


def run_progress(history: RunHistory, *, active: bool, language: str) -> str:
    """Return the progress bar with the remaining time."""
    if history.read < 1:
        percent = round(100 * history.read)
        return progress(t("training.reading_log", language, percent=percent), percent, 100)
    if active and history.phase:
        part, done, total = history.phase
        return progress(t("training.preparing", language, part=part, done=done, total=total), done, total)
    if not history.total:
        return note(t("training.starting", language)) if active else ""
    label = t("training.step_of", language, step=history.step, total=history.total)
    left = time_left(history.seconds_left, language) if active else ""
    return progress(f"{label} · {left}" if left else label, min(history.step, history.total), history.total)


def figures(history: RunHistory, language: str) -> str:
    """Return the newest figures in one line that wraps."""
    names = {
        "epoch": "training.epoch",
        "loss_audio": "training.loss_audio",
        "loss_text": "training.loss_text",
        "learning_rate": "training.learning_rate",
        "samples_per_second": "training.clips_per_second",
        "memory_gb": "training.memory_gib",
    }
    values = {title: as_number(history.latest.get(name)) for name, title in names.items()}
    shown = {title: short(value) for title, value in values.items() if value is not None}
    if history.best:
        shown["training.best_evaluation"] = f"{history.best[0]:.4f} ({t('common.step', language)} {history.best[1]})"
    if history.used:
        used = sum(history.used.values())
        shown["common.clips"] = t("training.clips_used_excluded", language, used=used, aside=history.excluded)
    return cards(shown, language)


def chart_rows(history: RunHistory, curves: dict[str, str], language: str) -> list[ChartRow]:
    """Return the points of a chart."""
    return [(step, value, t(label, language)) for name, label in curves.items() for step, value in history.points(name)]


def messages(history: RunHistory, language: str) -> str:
    """Return the warnings, and the problems with clips or lines."""
    parts = []
    if history.warnings:
        newest_first = list(dict.fromkeys(reversed(history.warnings)))
        parts.append(message_list("warning", t("training.warnings", language), newest_first))
    if history.problem_count:
        title = t("training.problems", language, count=history.problem_count)
        parts.append(details(title, message_list("warning", "", reversed(history.problems))))
    return "".join(parts)


def active_optimizations(history: RunHistory, language: str) -> str:
    """Return what each optimization changed, what is active in the live model, and the memory estimate."""
    if not history.active and not history.switches:
        return ""
    rows = [(cell(name), cell(str(changed)), cell(detail)) for name, (changed, detail) in history.switches.items()]
    titles = [t(title, language) for title in ("training.switch", "training.changed", "training.effect")]
    changed = table(titles, rows, classes="stack") if rows else ""
    active = table(
        [t("training.model_part", language), t("common.state", language)],
        [(cell(name), cell(state)) for name, state in history.active.items()],
        classes="stack",
    )
    memory = note(f"{t('training.memory_estimate', language)}: {history.memory}") if history.memory else ""
    return details(t("training.active_optimizations", language), changed + active + memory)


def tracker_folder(run: Run, language: str) -> str:
    """Return the folder of the TensorBoard files, if there are any."""
    folder = run.folder / "tracker"
    return note(t("training.tensorboard_files", language, folder=folder)) if folder.is_dir() else ""


def samples(run: Run, history: RunHistory, language: str) -> str:
    """Return players of the sample sentences, newest step first."""
    steps: dict[int, list[Sample]] = {}
    for sample in history.samples:
        steps.setdefault(sample.step, []).append(sample)
    newest = sorted(steps, reverse=True)[:MAX_STEPS]
    if not newest:
        return note(t("training.no_samples", language))
    shown = []
    for number, step in enumerate(newest):
        title = f"{t('common.step', language)} {step}"
        players = "".join(_player(run, sample, title) for sample in steps[step])
        shown.append(f"<h4>{escape(title)}</h4>{players}" if number < OPEN_STEPS else details(title, players))
    return f'<div class="samples">{"".join(shown)}</div>'


def _player(run: Run, sample: Sample, title: str) -> str:
    path = run.folder / "samples" / f"step_{sample.step}" / Path(sample.file).name  # the project may have been moved
    address = f"gradio_api/file={quote(path.as_posix())}"
    label = escape(f"{title}: {sample.text}")
    return (
        f"<p>{escape(sample.text)}</p>"
        f'<audio controls preload="none" src="{escape(address)}" aria-label="{label}"></audio>'
    )


def log(run: Run) -> str:
    """Return the newest events as lines, followed by the end of the run's output."""
    events = newest_events(run, LOG_BYTES)[-LOG_LINES:]
    lines = "\n".join(_log_line(event) for event in events)
    return "\n\n".join(filter(None, (lines, read_tail(run.log).strip())))


def _log_line(event: Event) -> str:
    values = {name: short(value) if isinstance(value, float) else value for name, value in event.items()}
    return _clock(as_number(event.get("time"))) + format_event(values)


def _clock(when: float | None) -> str:
    """Return the time of day; nothing for a time that no calendar has."""
    try:
        return "" if when is None else datetime.fromtimestamp(when).strftime("%H:%M:%S ")  # noqa: DTZ006
    except (OverflowError, OSError, ValueError):
        return ""


def short(value: float) -> str:
    """Return a number in three digits."""
    if value and abs(value) < 0.001:
        return f"{value:.2e}".replace("e-0", "e-")
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
