"""What the tab shows of a run, as HTML made from its story; knows nothing of gradio."""

from datetime import datetime
from html import escape
from pathlib import Path
from urllib.parse import quote

from utils.core.events import Event, as_number, format_event, read_tail
from utils.runs import ACTIVE, Run, State
from utils.ui.i18n import t
from utils.ui.tabs.training.charts import CSS as CHART_CSS
from utils.ui.tabs.training.charts import Line, chart, charts, short
from utils.ui.tabs.training.run_history import Sample, Story
from utils.ui.views import cards, cell, details, message_list, newest_events, note, progress, run_head, table, time_left

OPEN_STEPS = 2  # whose samples are shown at once; the others unfold
MOST_STEPS = 30
LOG_BYTES, LOG_LINES = 32_768, 60

CSS = (
    CHART_CSS
    + """
.samples audio { width: 100%; max-width: 420px; height: 40px; display: block; }
.samples h4, .samples summary { font-size: var(--text-sm); font-weight: 600; margin: 10px 0 4px; }
.samples p { margin: 6px 0 2px; overflow-wrap: anywhere; }
.hint.did b { color: #047857; } .dark .hint.did b { color: #6ee7b7; }
"""
)


def facts(run: Run, state: State, story: Story, language: str) -> str:
    """Show what a run is doing, how far it is, and its newest figures."""
    at_work = state.status in ACTIVE
    return (
        run_head(run, state, language) + how_far(story, at_work=at_work, language=language) + figures(story, language)
    )


def how_far(story: Story, *, at_work: bool, language: str) -> str:
    """Show the bar with steps and the time that is left."""
    if story.read < 1:
        percent = round(100 * story.read)
        return progress(t("training.reading_log", language, percent=percent), percent, 100)
    if at_work and story.phase:
        part, done, total = story.phase
        words = t("training.preparing", language, part=part, done=done, total=total)
        return progress(words, done, total)
    if not story.total:
        return note(t("training.starting", language)) if at_work else ""
    words = t("training.step_of", language, step=story.step, total=story.total)
    left = time_left(story.seconds_left, language) if at_work else ""
    words += f" · {left}" if left else ""
    return progress(words, min(story.step, story.total), story.total)


def figures(story: Story, language: str) -> str:
    """Show the newest figures in one line that wraps."""
    shown: dict[str, str] = {}
    for name, title in (
        ("epoch", "training.epoch"),
        ("loss_audio", "training.loss_audio"),
        ("loss_text", "training.loss_text"),
        ("learning_rate", "training.learning_rate"),
        ("samples_per_second", "training.clips_per_second"),
        ("memory_gb", "training.memory_gib"),
    ):
        value = as_number(story.latest.get(name))
        if value is not None:
            shown[title] = short(value)
    if story.best:
        shown["training.best_evaluation"] = f"{story.best[0]:.4f} ({t('common.step', language)} {story.best[1]})"
    if story.used:
        used = sum(story.used.values())
        shown["common.clips"] = t("training.clips_used_excluded", language, used=used, aside=story.aside)
    return cards(shown, language)


def curves(story: Story, language: str) -> str:
    """Draw the curves of a run."""

    def line(name: str, label: str, *, dotted: bool = False) -> Line:
        return Line(t(label, language), story.points(name), dotted)

    averaged = "training.evaluation_ema" if story.points("eval_raw") else "common.evaluation"
    return charts(
        [
            chart(
                t("training.loss_audio", language),
                [
                    line("loss_audio", "common.training"),
                    line("eval_audio", averaged, dotted=True),
                ],
                language,
            ),
            chart(
                t("training.loss_text", language),
                [line("loss_text", "common.training"), line("eval_text", averaged, dotted=True)],
                language,
            ),
            chart(
                t("training.evaluation_loss", language),
                [line("eval", averaged, dotted=True), line("eval_raw", "training.without_ema", dotted=True)],
                language,
            ),
            chart(t("training.learning_rate", language), [line("rate", "training.learning_rate")], language),
            chart(t("training.speed", language), [line("speed", "training.clips_per_second")], language),
            chart(t("common.memory", language), [line("memory", "training.memory_gib")], language),
        ]
    )


def messages(story: Story, language: str) -> str:
    """Show warnings, and which clips or lines had faults."""
    parts = []
    if story.warnings:
        parts.append(
            message_list("warning", t("training.warnings", language), list(dict.fromkeys(reversed(story.warnings))))
        )
    if story.problem_count:
        title = t("training.problems", language, count=story.problem_count)
        parts.append(details(title, message_list("warning", "", reversed(story.problems))))
    return "".join(parts)


def what_is_on(story: Story, language: str) -> str:
    """Show what was found switched on in the live model, what each switch did, and the plan of memory."""
    if not story.on and not story.switches:
        return ""
    rows = [(cell(name), cell(str(changed)), cell(detail)) for name, (changed, detail) in story.switches.items()]
    titles = [t(title, language) for title in ("training.switch", "training.changed", "training.effect")]
    did = table(titles, rows, classes="stack") if rows else ""
    live = table(
        [t("training.model_part", language), t("common.state", language)],
        [(cell(name), cell(state)) for name, state in story.on.items()],
        classes="stack",
    )
    memory = note(f"{t('training.memory_estimate', language)}: {story.memory}") if story.memory else ""
    return details(t("training.active_optimizations", language), did + live + memory)


def tracker_folder(run: Run, language: str) -> str:
    """Name the folder of TensorBoard's files, where there are some."""
    folder = run.folder / "tracker"
    if not folder.is_dir():
        return ""
    told = t("training.tensorboard_files", language, folder=folder)
    return note(told)


def samples(run: Run, story: Story, language: str) -> str:
    """Show players for what was spoken, newest step first."""
    steps: dict[int, list[Sample]] = {}
    for sample in story.samples:
        steps.setdefault(sample.step, []).append(sample)
    newest = sorted(steps, reverse=True)[:MOST_STEPS]
    if not newest:
        return note(t("training.no_samples", language))
    shown = []
    for place, step in enumerate(newest):
        title = f"{t('common.step', language)} {step}"
        players = "".join(_player(run, sample, title) for sample in steps[step])
        shown.append(f"<h4>{escape(title)}</h4>{players}" if place < OPEN_STEPS else details(title, players))
    return f'<div class="samples">{"".join(shown)}</div>'


def _player(run: Run, sample: Sample, title: str) -> str:
    path = run.folder / "samples" / f"step_{sample.step}" / Path(sample.file).name  # the project may have moved
    label = f"{title}: {sample.text}"
    address = f"gradio_api/file={quote(path.as_posix())}"
    return (
        f"<p>{escape(sample.text)}</p>"
        f'<audio controls preload="none" src="{escape(address)}" aria-label="{escape(label)}"></audio>'
    )


def log(run: Run) -> str:
    """Return the newest events as lines, and below them what the run printed, such as the cause of a failure."""
    events = newest_events(run, LOG_BYTES)[-LOG_LINES:]
    told = "\n".join(_log_line(event) for event in events)
    return "\n\n".join(filter(None, (told, read_tail(run.log).strip())))


def _log_line(event: Event) -> str:
    """Write an event with its time of day, and its figures in few digits."""
    figures = {name: short(value) if isinstance(value, float) else value for name, value in event.items()}
    return _clock(as_number(event.get("time"))) + format_event(figures)


def _clock(when: float | None) -> str:
    """Show the clock on the wall at a time; nothing for what is none on any calendar."""
    try:
        return "" if when is None else datetime.fromtimestamp(when).strftime("%H:%M:%S ")  # noqa: DTZ006
    except (OverflowError, OSError, ValueError):
        return ""
