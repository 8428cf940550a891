"""The card of a model: what it is, what it was made from, what was measured, and how to make it speak."""

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
    from utils.speech.open_model import Opened

MADE_HERE = {TINY: "the small voice of this project", TINY_RANDOM: "a tiny model of random weights"}
OURS = "Apache License 2.0"
READY = "ready"
FIGURES = {
    "cer": "wrong letters, by a recogniser",
    "wer": "wrong words, by a recogniser",
    "similarity": "likeness of the voice (cosine)",
    "duration_error": "error of the duration",
    "distance": "mel-cepstral distance (dB)",
    "flags": "doubtful sentences",
    "real_time_factor": "seconds of work for a second of sound",
}
SECRET = frozenset("train_csv eval_csv output_path custom_model sample_texts".split())  # places on somebody's computer

PLAIN = """\
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
heard = torch.from_numpy(samples.mean(axis=1)).unsqueeze(0)
latents, voice = model.get_gpt_cond_latents(heard, rate), model.get_speaker_embedding(heard, rate)
{spelled}
result = model.inference("{text}", "{code}", latents, voice)
sound = torch.from_numpy(result["wav"])  # 24 000 samples a second
"""
SPELLED = """\
# coqui-tts cannot read {language} itself: `python -m utils say-how` shows in its line "read" what this model reads
model.tokenizer.preprocess_text = lambda text, language: text"""
OWN = """\
python -m utils speak "{text}" --model {folder} --out hello.wav"""


@dataclass(frozen=True)
class Lesson:
    """What a model learnt from.

    Attributes:
        clips: Clips it was trained with; 0: not known.
        listed: Clips in the list that these were taken from; 0: not known any more.
        hours: Length of the clips in the list.
        held_back: Clips it was judged by.
        settings: What differs from the defaults.
    """

    clips: int = 0
    listed: int = 0
    hours: float = 0.0
    held_back: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)


def write_card(opened: "Opened", name: str, *, adapter: bool = False, report: Path | None = None) -> str:
    """Write the card of a model. What is not known is left out, never guessed.

    Args:
        opened: The model.
        name: What it is called.
        adapter: Whether only its adapter is given away.
        report: A report.json that an evaluation of this model wrote.
    """
    lesson = learnt(opened)
    parts = [
        _head(opened),
        f"# {name}\n\n{_what(opened, adapter=adapter)}",
        _licence(opened),
        _training(opened, lesson),
        figures(report) if report else "",
        _use(opened, name, adapter=adapter),
        _honesty(opened),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def learnt(opened: "Opened") -> Lesson:
    """Find what a model learnt from, in the run that it came from, as far as that is still there."""
    checkpoint = opened.checkpoint or _promoted(opened)
    if checkpoint is None or checkpoint.info is None:
        return Lesson()
    settings = checkpoint.info.settings
    changed = {key: value for key, value in settings.items() if value != _default(key) and key not in SECRET}
    used, aside = _counted(checkpoint.run)
    known = Lesson(used.get("train", 0), held_back=used.get("eval", 0), settings=changed)
    try:
        clips = clip_lists.read(TrainConfig.parse(settings), Project(checkpoint.run.parent.parent)).train
    except (AmharicTtsError, OSError):  # the dataset is gone, or the settings are of another version
        return known
    if len(clips) != used.get("train", 0) + aside.get("train", 0):
        return known  # it is no longer what the run saw
    return replace(known, listed=len(clips), hours=sum(clip.span.seconds for clip in clips) / 3600)


def figures(path: Path) -> str:
    """Write the summary of an evaluation as a table."""
    try:
        data = read_json(path)
        summary = {str(name): dict(row) for name, row in data["summary"].items()}
        notes = [str(note) for note in data.get("notes", [])]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is no report: {error!r}.", hint="Name a report.json of: evaluate.") from error
    columns = [name for name in FIGURES if any(row.get(name) is not None for row in summary.values())]
    lines = ["## Measured", "", f"| model | {' | '.join(FIGURES[name] for name in columns)} |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    for name, row in summary.items():
        lines.append(f"| {name} | {' | '.join(_figure(row.get(column)) for column in columns)} |")
    return "\n".join([*lines, *(f"\n{note}" for note in notes)])


def base_of(opened: "Opened") -> str:
    """Name the model that it was trained from, the first of a line; empty when it says nothing about it."""
    if (opened.folder / RECIPE_FILE).is_file():
        return TINY_RANDOM
    return Path(str(read_about(opened.folder).get("base") or opened.about.get("base", ""))).name


def _head(opened: "Opened") -> str:
    """Write what hubs sort models by."""
    spoken = "\n".join(f"- {code}" for code in opened.languages)
    licence = "apache-2.0" if base_of(opened) in MADE_HERE else "other"
    other = "" if licence != "other" else "license_name: coqui-public-model-license\n"
    return (
        f"---\nlanguage:\n{spoken}\nlicense: {licence}\n{other}"
        "pipeline_tag: text-to-speech\ntags:\n- xtts\n- text-to-speech\n---"
    )


def _what(opened: "Opened", *, adapter: bool) -> str:
    settings = opened.tokenizer.settings
    base = base_of(opened)
    spoken = f" that speaks {find(settings.language).name}" if settings else ""
    came = f" It was trained from {_titled(base)}." if base and base != opened.folder.name else ""
    only = " This is its adapter alone; the base is needed to speak with it." if adapter else ""
    reads = f" It reads {MODES[settings.mode]}." if settings else ""
    return f"A voice model of the XTTS v2 kind{spoken}.{came}{reads}{only}"


MODES = {
    "latin": "a spelling in Latin letters, made by rules from the written text",
    "ipa": "phonemes, made by rules from the written text",
    "fidel": "the letters of the language itself",
}


def _titled(base: str) -> str:
    return MADE_HERE.get(base, f"XTTS v2 ({base})")


def _licence(opened: "Opened") -> str:
    if base_of(opened) in MADE_HERE:
        return f"## Licence\n\nIts base is {_titled(base_of(opened))}: {OURS}."
    return (
        f"## Licence\n\nXTTS v2 comes under the {LICENCE}, which allows non-commercial use only. This model was made "
        "from it, so the same holds for this model and for the sound it makes. Whoever passes it on passes on that "
        "licence too. The rights of the people whose voice it learnt are a matter of their own."
    )


def _training(opened: "Opened", lesson: Lesson) -> str:
    lines = []
    if lesson.clips:
        hours = f" of a list of {lesson.listed:,} with {lesson.hours:.2f} hours" if lesson.listed else ""
        judged = f"; judged by {lesson.held_back:,} others" if lesson.held_back else ""
        lines.append(f"- data: {lesson.clips:,} clips{hours}{judged}")
    about = opened.about
    lines += [f"- {title}: {about[key]:,}" for key, title in COUNTS.items() if isinstance(about.get(key), int | float)]
    losses = {title: about.get(key) for key, title in LOSSES.items()}
    lines += [f"- {title}: {value:.4f}" for title, value in losses.items() if isinstance(value, int | float)]
    if about.get("is_average"):
        lines.append("- weights: the running average")
    lines += [f"- {name}: {value}" for name, value in lesson.settings.items()]
    return "\n".join(["## Training", "", *lines]) if lines else ""


COUNTS = {"step": "updates", "epoch": "passes over the clips"}
LOSSES = {
    "train_loss": "loss in training",
    "eval_loss": "loss on clips that were held back",
    "eval_text": "of the text alone",
    "eval_audio": "of the sound alone",
}


def _use(opened: "Opened", name: str, *, adapter: bool) -> str:
    text, read, code = _example(opened)
    lines = ["## How to make it speak", "", "With this project:", "", "```", OWN.format(text=text, folder=name), "```"]
    if adapter:
        return "\n".join(lines)
    settings = opened.tokenizer.settings
    spelled = SPELLED.format(language=find(code).name) if settings and settings.language == code else ""
    reference = 'folder / "reference.wav"' if opened.reference else '"a recording of the voice.wav"'
    words = {"folder": name, "reference": reference, "text": read, "code": code, "spelled": spelled}
    plain = PLAIN.format(**words).replace("\n\nresult", "\nresult")
    return "\n".join([*lines, "", "With plain coqui-tts 0.28:", "", "```python", plain + "```"])


def _example(opened: "Opened") -> tuple[str, str, str]:
    """Return a text, how the model reads it, and its language."""
    settings = opened.tokenizer.settings
    code = settings.language if settings else next(iter(opened.languages), "en")
    text = EXAMPLES.get(code, "Hello.")
    return text, opened.tokenizer.tokenize(text, code).model_text if settings else text, code


EXAMPLES = {"am": "ሰላም ለዓለም።"}


def _honesty(opened: "Opened") -> str:
    spoken = ", ".join(find(code).name for code in opened.languages)
    return (
        "## What to know\n\nWhatever comes out of it is synthetic speech: say so where people hear it, and use no "
        "voice without the consent of its owner. It can leave out or repeat words, most of all in very short texts. "
        f"Its vocabulary has signs for {spoken}; how well it speaks them is not known but for the figures above."
    )


def _promoted(opened: "Opened") -> Checkpoint | None:
    """Find the checkpoint that a finished model was made of."""
    run, step = opened.about.get("run"), opened.about.get("step")
    if opened.folder.name != READY or not isinstance(run, str) or not isinstance(step, int):
        return None
    found = checkpoints.list_checkpoints(Project(opened.folder.parent).runs / Path(run).name)
    return next((one for one in found if one.step == step), None)


def _counted(run: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Count the clips of each list that a run used and those it set aside, by what it said itself."""
    used: dict[str, int] = {}
    aside: dict[str, int] = {}
    for event in iter_events(Run(run).events):
        if event["kind"] == "clips":
            used[str(event["split"])], aside[str(event["split"])] = int(str(event["used"])), int(str(event["aside"]))
    return used, aside


def _default(name: str) -> object:
    known = TrainConfig.model_fields.get(name)
    return known.default if known else None


def _figure(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, int | float) else ""
