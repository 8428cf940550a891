"""The model card: what a model is, what it was trained on, its evaluation, and how to use it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.config import TrainConfig
from utils.core.errors import AmharicTtsError, DataError
from utils.core.events import iter_events
from utils.core.languages import find
from utils.core.paths import Project
from utils.core.storage import read_json
from utils.dataset import clip_lists
from utils.runs import Run
from utils.xtts import checkpoints
from utils.xtts.checkpoints import Checkpoint
from utils.xtts.files import TINY, TINY_RANDOM, read_about
from utils.xtts.licence import LICENCE
from utils.xtts.random_model import RECIPE_FILE

if TYPE_CHECKING:
    from utils.speech.loaded_model import LoadedModel

BUILT_IN = {TINY: "the embedded voice of this project", TINY_RANDOM: "a tiny model with random weights"}
METRICS = {
    "cer": "character error rate",
    "wer": "word error rate",
    "similarity": "voice similarity (cosine)",
    "duration_error": "duration error",
    "distance": "mel-cepstral distance (dB)",
    "flags": "warnings per sentence",
    "real_time_factor": "real-time factor",
}
COUNTS = {"step": "steps", "epoch": "epochs"}
LOSSES = {
    "train_loss": "training loss",
    "eval_loss": "evaluation loss",
    "eval_text": "evaluation loss, text",
    "eval_audio": "evaluation loss, audio",
}
TEXT_MODES = {
    "latin": "a phonetic Latin spelling, made by rules from the text",
    "ipa": "phonemes, made by rules from the text",
    "fidel": "the letters of the language itself",
}
LOCAL_SETTINGS = frozenset("train_csv eval_csv output_path custom_model sample_texts".split())  # paths on this computer
EXAMPLES = {"am": "ሰላም ለዓለም።"}

USE_HERE = """\
## How to use it

With this project:

```
python -m utils speak "{text}" --model {folder} --out hello.wav
```"""
USE_COQUI = """

With plain coqui-tts 0.28:

```python
from pathlib import Path

import soundfile
import torch
from TTS.tts.configs.xtts_config import XttsConfig
from TTS.tts.models.xtts import Xtts

folder = Path("{folder}")
config = XttsConfig()
config.load_json(folder / "config.json")
model = Xtts(config)
model.load_checkpoint(config, checkpoint_dir=folder)
samples, rate = soundfile.read({reference}, dtype="float32", always_2d=True)
reference = torch.from_numpy(samples.mean(axis=1)).unsqueeze(0)
latents, voice = model.get_gpt_cond_latents(reference, rate), model.get_speaker_embedding(reference, rate)
{spelling}result = model.inference("{model_text}", "{code}", latents, voice)
samples = torch.from_numpy(result["wav"])  # 24 kHz
```"""
SPELLING = """\
# coqui-tts cannot read {language}: `python -m utils say-how` prints the text to use in its line "read"
model.tokenizer.preprocess_text = lambda text, language: text
"""


@dataclass(frozen=True)
class TrainingData:
    """What a model was trained on.

    Attributes:
        clips: Training clips used; 0: unknown.
        listed: Clips in the list they come from; 0: unknown.
        hours: Length of the list.
        held_out: Evaluation clips.
        settings: Settings that differ from the defaults.
    """

    clips: int = 0
    listed: int = 0
    hours: float = 0.0
    held_out: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)


def write_card(opened: "LoadedModel", name: str, *, adapter: bool = False, report: Path | None = None) -> str:
    """Write the card of a model; anything unknown is left out.

    Args:
        opened: The model.
        name: Its name.
        adapter: Whether only the adapter is published.
        report: report.json of an evaluation of this model.
    """
    parts = [
        _metadata(opened),
        f"# {name}\n\n{_description(opened, adapter=adapter)}",
        _licence(opened),
        _training(opened),
        evaluation_table(report) if report else "",
        _usage(opened, name, adapter=adapter),
        _limitations(opened),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def training_data(opened: "LoadedModel") -> TrainingData:
    """Find the training data of a model in its run, as far as it still exists."""
    checkpoint = opened.checkpoint or _source_checkpoint(opened)
    if checkpoint is None or checkpoint.info is None:
        return TrainingData()
    settings = checkpoint.info.settings
    used, excluded = _clip_counts(checkpoint.run)
    fields = TrainConfig.model_fields
    defaults = {key: fields[key].default for key in settings if key in fields}
    changed = {key: value for key, value in settings.items() if value != defaults.get(key)}
    data = TrainingData(
        used.get("train", 0),
        held_out=used.get("eval", 0),
        settings={key: value for key, value in changed.items() if key not in LOCAL_SETTINGS},
    )
    try:
        clips = clip_lists.read(TrainConfig.parse(settings), Project(checkpoint.run.parent.parent)).train
    except (AmharicTtsError, OSError):  # the dataset is gone, or the settings are of another version
        return data
    if len(clips) != used.get("train", 0) + excluded.get("train", 0):
        return data  # the dataset changed after the run
    return replace(data, listed=len(clips), hours=sum(clip.span.seconds for clip in clips) / 3600)


def evaluation_table(path: Path) -> str:
    """Format the summary of an evaluation as a Markdown table."""
    try:
        report = read_json(path)
        rows = {str(name): dict(row) for name, row in report["summary"].items()}
        notes = [str(note) for note in report.get("notes", [])]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path} is not a report: {error!r}.", hint="Choose a report.json written by evaluate."
        ) from error
    columns = [name for name in METRICS if any(row.get(name) is not None for row in rows.values())]
    lines = ["## Evaluation", "", f"| model | {' | '.join(METRICS[name] for name in columns)} |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    for name, row in rows.items():
        values = [row.get(column) for column in columns]
        cells = [f"{value:.3f}" if isinstance(value, int | float) else "" for value in values]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, *(f"\n{note}" for note in notes)])


def base_name(opened: "LoadedModel") -> str:
    """Return the name of the model it was originally trained from; "" when unknown."""
    if (opened.folder / RECIPE_FILE).is_file():
        return TINY_RANDOM
    return Path(str(read_about(opened.folder).get("base") or opened.about.get("base", ""))).name


def _metadata(opened: "LoadedModel") -> str:
    codes = "\n".join(f"- {code}" for code in opened.languages)
    licence = "license: other\nlicense_name: coqui-public-model-license"
    if base_name(opened) in BUILT_IN:
        licence = "license: apache-2.0"
    tags = "pipeline_tag: text-to-speech\ntags:\n- xtts\n- text-to-speech"
    return f"---\nlanguage:\n{codes}\n{licence}\n{tags}\n---"


def _base_title(base: str) -> str:
    return BUILT_IN.get(base, f"XTTS v2 ({base})")


def _description(opened: "LoadedModel", *, adapter: bool) -> str:
    settings, base = opened.tokenizer.settings, base_name(opened)
    parts = [f"An XTTS v2 voice model{f' for {find(settings.language).name}' if settings else ''}."]
    if base and base != opened.folder.name:
        parts.append(f"It was trained from {_base_title(base)}.")
    if settings:
        parts.append(f"Its input is {TEXT_MODES[settings.mode]}.")
    if adapter:
        parts.append("This is only the adapter; the base model is needed to use it.")
    return " ".join(parts)


def _licence(opened: "LoadedModel") -> str:
    if base_name(opened) in BUILT_IN:
        return f"## Licence\n\nIts base is {_base_title(base_name(opened))}: Apache License 2.0."
    return (
        f"## Licence\n\nXTTS v2 is published under the {LICENCE}, which allows non-commercial use only. This model "
        "is derived from it, so the licence also applies to this model and its output, and must be passed on with it. "
        "The rights of the recorded speakers are a separate matter."
    )


def _training(opened: "LoadedModel") -> str:
    data, about = training_data(opened), opened.about
    lines = []
    if data.clips:
        listed = f" of {data.listed:,} listed ({data.hours:.2f} hours)" if data.listed else ""
        held_out = f"; {data.held_out:,} held out for evaluation" if data.held_out else ""
        lines.append(f"- data: {data.clips:,} clips{listed}{held_out}")
    lines += [f"- {title}: {about[key]:,}" for key, title in COUNTS.items() if isinstance(about.get(key), int | float)]
    lines += [
        f"- {title}: {about[key]:.4f}" for key, title in LOSSES.items() if isinstance(about.get(key), int | float)
    ]
    if about.get("is_average"):
        lines.append("- weights: moving average")
    lines += [f"- {name}: {value}" for name, value in data.settings.items()]
    return "\n".join(["## Training", "", *lines]) if lines else ""


def _usage(opened: "LoadedModel", name: str, *, adapter: bool) -> str:
    settings = opened.tokenizer.settings
    code = settings.language if settings else next(iter(opened.languages), "en")
    text = EXAMPLES.get(code, "Hello.")
    here = USE_HERE.format(text=text, folder=name)
    if adapter:
        return here
    return here + USE_COQUI.format(
        folder=name,
        reference='folder / "reference.wav"' if opened.reference else '"your reference.wav"',
        spelling=SPELLING.format(language=find(code).name) if settings else "",
        model_text=opened.tokenizer.tokenize(text, code).model_text if settings else text,
        code=code,
    )


def _limitations(opened: "LoadedModel") -> str:
    names = ", ".join(find(code).name for code in opened.languages)
    return (
        "## Limitations\n\nThe output is synthetic speech: say so wherever people hear it, and use no voice without "
        "the consent of its owner. The model can drop or repeat words, above all in very short texts. Its vocabulary "
        f"covers {names}; nothing is known of its quality beyond the results above."
    )


def _source_checkpoint(opened: "LoadedModel") -> Checkpoint | None:
    """Find the checkpoint that a ready folder was made from."""
    run, step = opened.about.get("run"), opened.about.get("step")
    if opened.folder.name != "ready" or not isinstance(run, str) or not isinstance(step, int):
        return None
    index = checkpoints.list_checkpoints(Project(opened.folder.parent).runs / Path(run).name)
    return next((checkpoint for checkpoint in index if checkpoint.step == step), None)


def _clip_counts(run: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Count the clips that a run used and excluded, by split, from its events."""
    used: dict[str, int] = {}
    excluded: dict[str, int] = {}
    for event in iter_events(Run(run).events):
        if event["kind"] == "clips":
            split = str(event["split"])
            used[split] = int(str(event["used"]))
            excluded[split] = int(str(event.get("excluded", event.get("aside", 0))))
    return used, excluded
