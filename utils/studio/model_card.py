"""The model card: what a model is, what it was trained on, its evaluation, and how to use it."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.config import TrainConfig
from utils.core import wording
from utils.core.errors import AmharicTtsError
from utils.core.events import iter_events
from utils.core.facts import from_json
from utils.core.languages import find
from utils.core.storage import read_document
from utils.dataset import metadata
from utils.dataset.clip import total_seconds
from utils.dataset.sources import used_corpora
from utils.evaluation.results import METRICS
from utils.studio.amharic_wheel import wheel_name
from utils.studio.facts import InputError
from utils.studio.models import pronunciations_of
from utils.studio.paths import Project
from utils.studio.runs import Run
from utils.studio.templates import render
from utils.training.facts import Clips
from utils.xtts import checkpoints
from utils.xtts.checkpoints import SavedCheckpoint
from utils.xtts.files import TINY, read_about
from utils.xtts.hub import LICENCE
from utils.xtts.portable import alias_of

if TYPE_CHECKING:
    from utils.speech.loading import LoadedModel

EMBEDDED = "the embedded voice of this project"
RESULTS = {  # of about.json: title and format
    "step": ("steps", ","),
    "epoch": ("epochs", ","),
    "train_loss": ("training loss", ".4f"),
    "eval_loss": ("evaluation loss", ".4f"),
    "eval_text": ("evaluation loss, text", ".4f"),
    "eval_audio": ("evaluation loss, audio", ".4f"),
}
TEXT_MODES = {
    "latin": "a phonetic Latin spelling, made by rules from the text",
    "ipa": "phonemes, made by rules from the text",
    "fidel": "the letters of the language itself",
}
LOCAL_SETTINGS = frozenset("train_csv eval_csv output_path custom_model sample_texts".split())  # paths on this computer
EXAMPLES = {"am": "ሰላም ለዓለም።"}


# Long because it is a list: each value of the template.
def write_card(opened: "LoadedModel", name: str, *, adapter: bool = False, report: Path | None = None) -> str:
    """Write the card of a model, or of its adapter alone; anything unknown is left out.

    ``report`` is the report.json of an evaluation of this model.
    """
    base = Path(str(read_about(opened.folder).get("base") or opened.about.get("base", ""))).name  # "" when unknown
    settings = opened.tokenizer.settings
    code = settings.language if settings else next(iter(opened.languages), "en")
    text = EXAMPLES.get(code, "Hello.")
    own = pronunciations_of(opened.folder)
    return render(
        "model_card.md",
        name=name,
        adapter=adapter,
        languages=opened.languages,
        language_names=[find(code).name for code in opened.languages],
        language=find(settings.language).name if settings else "",
        mode=TEXT_MODES[settings.mode] if settings else "",
        is_embedded=base == TINY,
        is_derived=bool(base) and base != opened.folder.name,
        base_title=EMBEDDED if base == TINY else f"XTTS v2 ({base})",
        licence=LICENCE,
        training=_training(opened),
        corpora=used_corpora(Project(own.parent).dataset) if own else {},
        evaluation=_evaluation(report) if report else None,
        has_reference=bool(opened.reference),
        code=code,
        text=text,
        model_text=opened.tokenizer.tokenize(text, code).model_text if settings else text,
        alias="" if adapter else alias_of(opened.tokenizer),
        wheel=wheel_name(),
    )


def _training(opened: "LoadedModel") -> list[str]:
    """List the clips, results and changed settings, as far as the run still exists."""
    about = opened.about
    checkpoint = opened.checkpoint or _source_checkpoint(opened)
    settings = checkpoint.info.settings if checkpoint and checkpoint.info else {}
    lines = _training_clips(checkpoint.run, settings) if checkpoint and checkpoint.info else []
    for key, (title, form) in RESULTS.items():
        if isinstance(value := about.get(key), int | float):
            lines.append(f"{title}: {value:{form}}")
    if about.get("is_average"):
        lines.append("weights: moving average")
    defaults = {name: field.default for name, field in TrainConfig.model_fields.items()}
    changed = {name: value for name, value in settings.items() if value != defaults.get(name)}
    return lines + [f"{name}: {value}" for name, value in changed.items() if name not in LOCAL_SETTINGS]


def _source_checkpoint(opened: "LoadedModel") -> SavedCheckpoint | None:
    """Find the checkpoint that a ready folder was made from."""
    run = opened.about.get("run")
    step = opened.about.get("step")
    if opened.folder.name != "ready" or not isinstance(run, str) or not isinstance(step, int):
        return None
    index = checkpoints.list_checkpoints(Project(opened.folder.parent).runs / Path(run).name)
    return next((checkpoint for checkpoint in index if checkpoint.step == step), None)


def _training_clips(run: Path, settings: dict[str, Any]) -> list[str]:
    """Count the clips that a run used; the length of the list is known while the dataset is unchanged."""
    used = dict.fromkeys(("train", "eval"), 0)
    total = 0
    for fact in map(from_json, iter_events(Run(run).events)):
        if isinstance(fact, Clips):
            used[fact.split] = fact.used
            if fact.split == "train":
                total = fact.used + fact.aside
    if not used["train"]:
        return []
    line = f"data: {used['train']:,} clips"
    with contextlib.suppress(AmharicTtsError, OSError):  # the dataset is gone, or the settings are of another version
        clips = metadata.clips_of_run(run, TrainConfig.parse(settings), Project(run.parent.parent).dataset).train
        if len(clips) == total:
            line += f" of {total:,} listed ({total_seconds(clips) / 3600:.2f} hours)"
    return [line + (f"; {used['eval']:,} held out for evaluation" if used["eval"] else "")]


def _evaluation(path: Path) -> dict[str, object]:
    """Read the summary of an evaluation: the titles of its columns, a row for each model, and the notes."""
    try:
        report = read_document(path)
        rows = {str(name): dict(row) for name, row in report["summary"].items()}
        notes = [wording.describe(from_json(note)) for note in report.get("notes", [])]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError("not_a_report", str(path)) from error
    columns = [metric for metric in METRICS if any(row.get(metric.name) is not None for row in rows.values())]
    cells = {
        name: [f"{value:.3f}" if isinstance(value := row.get(column.name), int | float) else "" for column in columns]
        for name, row in rows.items()
    }
    return {"titles": [metric.full_title for metric in columns], "rows": cells, "notes": notes}
