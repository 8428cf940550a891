"""What the tab shows of runs and of this device, as HTML; does not import gradio."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from utils.config import TrainConfig
from utils.core import wording
from utils.core.facts import Optimization
from utils.core.wording import describe, join_list
from utils.dataset.store import Store
from utils.studio.paths import Project
from utils.studio.run_history import SCORES, Points, RunHistory, is_finite
from utils.studio.run_state import State
from utils.studio.runs import Run
from utils.studio.training_checks import DiskForecast, Result, differences, read_settings
from utils.training.facts import Sample
from utils.ui import progress, views
from utils.ui.html import html
from utils.ui.i18n import field_title, t
from utils.ui.views import cell, message_box, note
from utils.xtts.checkpoints import samples_folder

MAX_COMPARED = 6
OPEN_STEPS = 2  # whose samples are shown expanded
MAX_STEPS = 30
RAW = {"loss_audio", "loss_text", "rate", "speed"}  # curves of every step, which are smoothed

# The charts: title, and the label of each curve by its name in the history.
CHARTS = {
    "training.loss_audio": {"loss_audio": "common.training", "eval_audio": "common.evaluation"},
    "training.loss_text": {"loss_text": "common.training", "eval_text": "common.evaluation"},
    "training.evaluation_loss": {"eval": "common.evaluation", "eval_raw": "training.without_ema"},
    "training.other_languages": {"eval_others": "common.evaluation"},
    "training.scores": {name: f"training.score_{name}" for name in SCORES},
    "training.learning_rate": {"rate": "training.learning_rate"},
    "training.speed": {"speed": "training.clips_per_second"},
    "training.memory_gib": {"memory": "training.memory_gib"},
}


def facts(run: Run, state: State, history: RunHistory) -> str:
    shown = progress.facts(run, state)
    if history.read < 1:
        shown += note(t("training.reading_log", percent=round(100 * history.read)))
    if state.status in {"stopped", "lost", "failed"} and history.step > history.saved:
        shown += note(t("training.stopped_at", step=history.step, saved=history.saved))
    return shown + figures(history)


def figures(history: RunHistory) -> str:
    """Show the numbers that no chart has."""
    epoch = getattr(history.latest, "epoch", None)
    shown = {"training.epoch": f"{epoch:.4g}"} if is_finite(epoch) else {}
    if history.best:
        shown["training.best_evaluation"] = f"{views.loss(history.best[0])} ({t('common.step')} {history.best[1]})"
    if history.used:
        used = sum(history.used.values())
        shown["common.clips"] = t("training.clips_used_excluded", used=used, aside=history.excluded)
    return views.cards(shown)


def chart(history: RunHistory) -> dict[str, object] | None:
    """Return the value of the chart of a run: its curves by group, and the steps that were saved; None without any."""
    groups = []
    for title, curves in CHARTS.items():
        series = [
            {"name": t(label), "points": points, "is_raw": name in RAW}
            for name, label in curves.items()
            if (points := history.points(name))
        ]
        if series:
            groups.append({"title": t(title), "series": series})
    if not groups:
        return None
    marks = sorted({sample.step for sample in history.samples} | ({history.best[1]} if history.best else set()))
    return {"groups": groups, "marks": marks, "step": t("common.step"), "mark": t("training.checkpoint")}


def compared(curves: Sequence[tuple[str, Points]]) -> dict[str, object] | None:
    """Return the value of a chart of the evaluation losses of runs; None for a single one."""
    series = [{"name": name, "points": points, "is_raw": False} for name, points in curves]
    group = {"title": t("training.evaluation_loss"), "series": series}
    return {"groups": [group], "marks": [], "step": t("common.step")} if len(curves) > 1 else None


def messages(history: RunHistory) -> str:
    parts = []
    if history.warnings:
        newest_first = dict.fromkeys(describe(fact) for fact in reversed(history.warnings))
        parts.append(message_box("warning", "training.warnings", *newest_first, aloud=False))
    if history.problem_count:
        title = t("training.problems", count=history.problem_count)
        problems = [describe(fact) for fact in reversed(history.problems)]
        parts.append(views.details(title, message_box("warning", *problems, aloud=False), "problems"))
    return "".join(parts)


def active_optimizations(run: Run, history: RunHistory) -> str:
    """Return what each optimization changed, what is active in the live model, and the folder of TensorBoard files."""
    tracker = run.folder / "tracker"
    files = note(t("training.tensorboard_files", folder=tracker)) if tracker.is_dir() else ""
    if not history.active and not history.switches:
        return files

    effects = [(each.name, str(each.changed), effect_of(each)) for each in history.switches.values()]
    titles = ("training.switch", "training.changed", "training.effect")
    changed = views.table(titles, effects, classes="stack") if effects else ""
    parts = [(name, str(state)) for name, state in history.active.items()]
    active = views.table(("training.model_part", "common.state"), parts, classes="stack")
    memory = "".join(note(describe(fact)) for fact in (history.memory, history.gpu) if fact)
    return views.details("training.active_optimizations", changed + active + memory, "what-is-on") + files


def samples(run: Run, history: RunHistory) -> str:
    """Return players of the sample sentences, newest step first."""
    steps: dict[int, list[Sample]] = {}
    for sample in history.samples:
        steps.setdefault(sample.step, []).append(sample)
    newest = sorted(steps, reverse=True)[:MAX_STEPS]
    if not newest:
        is_off = read_settings(run).get("sample_texts") == "-"
        return note("training.samples_off" if is_off else "training.no_samples")
    shown = []
    for number, step in enumerate(newest):
        title = f"{t('common.step')} {step}"
        sounds = [_heard(run, sample, title) for sample in steps[step]]
        shown.append((title, f"samples-{step}", number < OPEN_STEPS, sounds))
    return html("run.html", "samples", shown)


def sample_path(run: Run, sample: Sample) -> Path:
    return samples_folder(run.folder, sample.step) / Path(sample.file).name  # the project may have been moved


def _heard(run: Run, sample: Sample, title: str) -> tuple[str, list[str]]:
    """Return a sentence with buttons that play the model's speech and, if there is one, the recording."""
    sounds = {"inference.model": sample_path(run, sample)}
    recording = run.project.root / sample.recording
    if sample.recording and recording.is_file() and recording.is_relative_to(run.project.root):
        sounds["training.recording"] = recording
    names = {t(key): path for key, path in sounds.items()}
    return sample.text, [views.hear(path, f"{name}, {title}: {sample.text}", name) for name, path in names.items()]


def comparison_table(runs: Sequence[Run], histories: Sequence[RunHistory]) -> str:
    """Return what differs between runs and how well each did."""
    if len(runs) < 2:
        return note("training.choose_two_runs")
    best = [cell(views.loss(item.best[0]), classes="mark") if item.best else "–" for item in histories]
    rows = [
        ["training.best_evaluation", *best],
        ["training.at_step", *(str(item.best[1]) if item.best else "–" for item in histories)],
        ["training.steps_done", *(str(item.step) for item in histories)],
        ["training.clips_used", *(str(sum(item.used.values()) or "–") for item in histories)],
    ]
    for name, values in differences(runs).items():
        title = field_title(TrainConfig, name)
        rows.append([title, *("–" if value == "" else str(value) for value in values)])
    return views.table(["training.setting", *(views.run_title(run) for run in runs)], rows)


def amount(project: Project, seconds: float | None) -> str:
    """Return how many clips there are, also to evaluate, and how long a training takes if that is known."""
    clips = Store(project.dataset).totals()["kept"]
    text = join_list([t("steps.clips", count=clips.clips), wording.time(clips.seconds)])
    took = "" if seconds is None else wording.time(round(seconds))
    return t("training.about_time", amount=text, time=took) if took else text


def disk_forecast(result: DiskForecast) -> str:
    """Return the forecast as text, with advice where the disk is too small."""
    sizes = {
        name: value if name in {"updates", "saves"} else views.gigabytes(value)
        for name, value in asdict(result).items()
    }
    text = t("training.disk_needed" if result.updates else "training.disk_per_checkpoint", **sizes)
    return f"{text} {t('training.disk_full')}" if result.most > result.free else text


def memory_tables(plan: Result) -> str:
    """Return the memory estimate: whether it fits, and its parts."""

    def gib(size: float) -> str:
        return f"{size / 2**30:.2f} GiB"

    kind, verdict = ("pass", "it_fits") if plan["peak"] <= plan["available"] else ("fail", "it_does_not_fit")
    sizes = {"batch": plan["batch"], "peak": gib(plan["peak"]), "name": plan["device"], "room": gib(plan["available"])}
    tuned = plan["tuned"]
    advice = t("training.memory_advice", **tuned | {"peak": gib(tuned["peak"])}) if tuned else plan["advice"]
    parts = [[f"MemoryPart.{name}", gib(size), f"MemoryPart.{name}.meaning"] for name, size in plan["parts"].items()]
    return (
        views.verdict(f"training.{verdict}", kind)
        + note(t("training.memory_needed", **sizes))
        + note(advice)
        + views.table(("training.part", "training.size", "training.meaning"), parts)
    )


def device_line(device: Result) -> str:
    memory = f"{device['memory'] / 2**30:.1f} GiB"
    if device["kind"] == "cpu":
        return t("training.device_cpu", memory=memory)
    untested = "" if device["kind"] == "cuda" else f" {t('training.device_untested')}"
    return t("training.device_gpu", name=device["name"], memory=memory) + untested


def effect_of(change: Optimization) -> str:
    """Return what an optimization changed; version 1.1 wrote a sentence."""
    return change.detail if isinstance(change.detail, str) else describe(change.detail)


def switch_hint(field: str, device: Result | None, effect: Optimization | None) -> str:
    """Return what a switch does on this device, and what it did in the selected run."""
    shown = note(device_hint(field, device)) if device else ""
    if effect:
        changed = views.joined(t("training.changed_in_run", count=effect.changed), effect_of(effect))
        shown += views.element("p", text=changed, class_="hint effect")
    return shown


def device_hint(field: str, device: Result) -> str:
    """Return the id of the phrase that says what a switch does on a device; empty if it works on every one.

    It depends on the kind of device and on what else was found: the format of mixed precision, TF32, a package.
    """
    kind = device["kind"]
    found = str(device["found"].get(field)).lower()
    names = (f"{field}.{kind}.{found}", f"{field}.{kind}", f"{field}.{found}", field)
    return next((key for name in names if (key := f"training.here.{name}") in wording.rows()), "")
