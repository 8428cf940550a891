"""The model card: what a model is, what it was trained on, its evaluation, and how to use it."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.config import TrainConfig
from utils.core.errors import AmharicTtsError, DataError
from utils.core.events import iter_events
from utils.core.languages import find
from utils.core.paths import Project
from utils.core.storage import read_json
from utils.dataset import metadata
from utils.dataset.corpora import used_corpora
from utils.runs import Run
from utils.xtts import checkpoints
from utils.xtts.checkpoints import Checkpoint
from utils.xtts.files import TINY, read_about
from utils.xtts.hub import LICENCE
from utils.xtts.pronunciations import project_file

if TYPE_CHECKING:
    from utils.speech.loading import LoadedModel

EMBEDDED = "the embedded voice of this project"
METRICS = {
    "cer": "character error rate",
    "wer": "word error rate",
    "similarity": "voice similarity (cosine)",
    "duration_error": "duration error",
    "distance": "mel-cepstral distance (dB)",
    "flags": "warnings per sentence",
    "real_time_factor": "real-time factor",
}
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

METADATA = """\
---
language:
{codes}
{licence}
pipeline_tag: text-to-speech
tags:
- xtts
- text-to-speech
---"""
COQUI_LICENCE = f"""\
XTTS v2 is published under the {LICENCE}, which allows non-commercial use only. This model is derived from it, so the \
licence also applies to this model and its output, and must be passed on with it. The rights of the recorded speakers \
are a separate matter."""
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
# coqui-tts cannot read {language}: `python -m utils say-how` prints the text to use in its line "read", and the package
# amharic-text (`python -m tools.amharic_text FOLDER` builds it) makes it for other programs. Raw letters are misread.
model.tokenizer.preprocess_text = lambda text, language: text
"""
LIMITATIONS = """\
## Limitations

The output is synthetic speech: say so wherever people hear it, and use no voice without the consent of its owner. \
The model can drop or repeat words, above all in very short texts. Its vocabulary covers {languages}; nothing is known \
of its quality beyond the results above."""


def write_card(opened: "LoadedModel", name: str, *, adapter: bool = False, report: Path | None = None) -> str:
    """Write the card of a model; anything unknown is left out.

    Args:
        opened: The model.
        name: Its name.
        adapter: Whether only the adapter is published.
        report: report.json of an evaluation of this model.
    """
    base = Path(str(read_about(opened.folder).get("base") or opened.about.get("base", ""))).name  # "" when unknown
    base_title = EMBEDDED if base == TINY else f"XTTS v2 ({base})"
    if base == TINY:
        licence, terms = "license: apache-2.0", f"Its base is {base_title}: Apache License 2.0."
    else:
        licence, terms = "license: other\nlicense_name: coqui-public-model-license", COQUI_LICENCE
    parts = [
        METADATA.format(codes="\n".join(f"- {code}" for code in opened.languages), licence=licence),
        f"# {name}\n\n{_description(opened, base, base_title, adapter=adapter)}",
        f"## Licence\n\n{terms}",
        _training(opened),
        _attribution(opened),
        _evaluation(report) if report else "",
        _usage(opened, name, adapter=adapter),
        LIMITATIONS.format(languages=", ".join(find(code).name for code in opened.languages)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _description(opened: "LoadedModel", base: str, base_title: str, *, adapter: bool) -> str:
    settings = opened.tokenizer.settings
    sentences = [f"An XTTS v2 voice model{f' for {find(settings.language).name}' if settings else ''}."]
    if base and base != opened.folder.name:
        sentences.append(f"It was trained from {base_title}.")
    if settings:
        sentences.append(f"Its input is {TEXT_MODES[settings.mode]}.")
    if adapter:
        sentences.append("This is only the adapter; the base model is needed to use it.")
    return " ".join(sentences)


def _training(opened: "LoadedModel") -> str:
    """List the clips, results and changed settings, as far as the run still exists."""
    about, checkpoint = opened.about, opened.checkpoint or _source_checkpoint(opened)
    settings = checkpoint.info.settings if checkpoint and checkpoint.info else {}
    lines = _training_clips(checkpoint.run, settings) if checkpoint and checkpoint.info else []
    for key, (title, form) in RESULTS.items():
        if isinstance(value := about.get(key), int | float):
            lines.append(f"- {title}: {value:{form}}")
    if about.get("is_average"):
        lines.append("- weights: moving average")
    defaults = {name: field.default for name, field in TrainConfig.model_fields.items()}
    changed = {name: value for name, value in settings.items() if value != defaults.get(name)}
    lines += [f"- {name}: {value}" for name, value in changed.items() if name not in LOCAL_SETTINGS]
    return "\n".join(["## Training", "", *lines]) if lines else ""


def _attribution(opened: "LoadedModel") -> str:
    """Name the published corpora in the dataset of the model's project, with their licences."""
    own = project_file(opened.folder)
    used = used_corpora(Project(own.parent).dataset) if own else {}
    lines = [f"- {title} ({source}), {licence}" for source, (title, _, licence, *_rest) in used.items()]
    return "\n".join(["## Training data", "", *lines]) if lines else ""


def _source_checkpoint(opened: "LoadedModel") -> Checkpoint | None:
    """Find the checkpoint that a ready folder was made from."""
    run, step = opened.about.get("run"), opened.about.get("step")
    if opened.folder.name != "ready" or not isinstance(run, str) or not isinstance(step, int):
        return None
    index = checkpoints.list_checkpoints(Project(opened.folder.parent).runs / Path(run).name)
    return next((checkpoint for checkpoint in index if checkpoint.step == step), None)


def _training_clips(run: Path, settings: dict[str, Any]) -> list[str]:
    """Count the clips that a run used; the length of the list is known while the dataset is unchanged."""
    used = dict.fromkeys(("train", "eval"), 0)
    total = 0
    for event in iter_events(Run(run).events):
        if event["kind"] == "clips":
            used[str(event["split"])] = int(str(event["used"]))
            if event["split"] == "train":
                excluded = event.get("excluded", event.get("aside", 0))
                total = used["train"] + int(str(excluded))
    if not used["train"]:
        return []
    line = f"- data: {used['train']:,} clips"
    with contextlib.suppress(AmharicTtsError, OSError):  # the dataset is gone, or the settings are of another version
        clips = metadata.clips_of_run(run, TrainConfig.parse(settings), Project(run.parent.parent)).train
        if len(clips) == total:
            line += f" of {total:,} listed ({sum(clip.span.seconds for clip in clips) / 3600:.2f} hours)"
    return [line + (f"; {used['eval']:,} held out for evaluation" if used["eval"] else "")]


def _evaluation(path: Path) -> str:
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
