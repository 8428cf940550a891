"""Checks before a training run starts: device, dataset, memory and disk space.

Queries that need torch are answered by a child process, because the page itself never loads torch. The child is
``python -m utils.studio.training_checks NAME``. It reads arguments as JSON from stdin and prints the result as one
line of JSON.
"""

import importlib.util
import json
import math
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.config import TrainConfig, read_yaml
from utils.core.errors import AmharicTtsError, ConfigError
from utils.core.facts import error_from_json, error_to_json, to_json
from utils.core.languages import canonical
from utils.core.paths import TINY_MODEL, expand_home
from utils.core.processes import query
from utils.core.storage import free_space
from utils.dataset import metadata
from utils.dataset.clip import total_seconds
from utils.studio import paths
from utils.studio.downloads import require_consent
from utils.studio.facts import DatasetCheck, DatasetFinding
from utils.studio.paths import Project
from utils.studio.runs import Run
from utils.xtts.files import TINY, VOCABULARY_FILE

if TYPE_CHECKING:
    from utils.dataset.clip import Clip
    from utils.dataset.metadata import ClipLists
    from utils.xtts.tokenizer import Tokenizer

TIMEOUT = 900.0  # seconds; for a check of 50,000 clips
MAX_NAMED = 5  # clips that a finding names

LITTLE_HOURS = 2.0  # below it, configs/small_dataset.yaml is recommended

HALF, WIDE = 2, 4  # bytes of a number in checkpoints and in the resume state
PUBLISHED = 441_018_563  # parameters of XTTS v2's GPT
EMBEDDED = 9_381_318  # of the tiny base model's
NOT_COMPARED = {"output_path"}
MOMENTS = {"adamw": 2 * WIDE, "adamw_8bit": 2, "adafactor": 0}  # bytes per weight

Result = dict[str, Any]


# In the page


def ask(name: str, **arguments: object) -> Result:
    """Run a query of ``QUERIES`` in a child process; its error is raised here."""
    text = json.dumps(arguments, default=lambda config: config.model_dump(mode="json"))
    return query(["-m", __name__, name], read_result, timeout=TIMEOUT, text=text)


def read_result(output: str) -> Result:
    """Read the last line that the child printed; raise the error in it."""
    result = json.loads(output.strip().splitlines()[-1])
    if "error" in result:
        raise error_from_json(result)
    return dict(result)


def require_ready(config: TrainConfig) -> None:
    """Refuse a run whose licence is not accepted, or whose optimizer this computer does not have."""
    require_consent(config.version, config.custom_model)
    if config.optimizer == "adamw_8bit":
        ask("optimizer", config=config)


# The disk space of a run


@dataclass(frozen=True)
class DiskForecast:
    """What a run will write; sizes in bytes."""

    updates: int  # optimizer steps of the run; 0 when the dataset is not known
    saves: int  # checkpoints
    checkpoint: int
    resume: int
    most: int  # at a time
    free: int  # now


def forecast_disk(config: TrainConfig, project: Project) -> DiskForecast:
    """Return an upper bound; frozen weights and adapters need less."""
    parameters = EMBEDDED if config.version == TINY and not config.custom_model else PUBLISHED
    clips = _count_lines(Path(config.train_csv or project.dataset / metadata.FILES["train"]))
    updates = math.ceil(clips / (config.batch_size * config.grad_acumm)) * config.num_epochs
    updates = min(updates, config.max_steps or updates)
    saves = math.ceil(updates / config.save_step)
    kept = min(config.save_n_checkpoints + 1, max(1, saves)) + 1  # with the best, and one being written
    checkpoint = parameters * HALF * (1 + config.enable_ema)  # averaged weights, and those of the training
    resume = parameters * (WIDE + MOMENTS[config.optimizer] + WIDE * config.enable_ema)
    most = kept * checkpoint + 2 * resume
    return DiskForecast(updates, saves, checkpoint, resume, most, free_space(project.root))


def _count_lines(path: Path) -> int:
    """Count the lines of a list below its header; 0 when it does not exist."""
    try:
        with path.open("rb") as file:
            return max(0, sum(1 for line in file if line.strip()) - 1)
    except OSError:
        return 0


# The settings of several runs


def read_settings(run: Run) -> dict[str, object]:
    """Read the settings of a run; empty when the file is damaged."""
    try:
        return read_yaml(run.config)
    except ConfigError:
        return {}


def differences(runs: Sequence[Run]) -> dict[str, list[object]]:
    """Return the settings that differ between runs, in the order of declaration; blank where a file is damaged."""
    defaults = TrainConfig().model_dump()
    settings = [defaults | values if (values := read_settings(run)) else {} for run in runs]
    names = [name for name in defaults if len({str(values[name]) for values in settings if values}) > 1]
    return {name: [values.get(name, "") for values in settings] for name in names if name not in NOT_COMPARED}


# In the child


def device() -> Result:
    from utils.training import memory
    from utils.training.speedups.gpu import lacks_tf32
    from utils.xtts.device import choose_precision

    detected = memory.Device.detect(TrainConfig())
    found = {
        "enable_mixed_precision": choose_precision(detected.kind).dtype,
        "enable_tf32": not lacks_tf32(detected.kind),
        "use_compile": any(shutil.which(name) for name in ("c++", "g++", "clang++", "cl")),
        "optimizer": importlib.util.find_spec("bitsandbytes") is not None,
    }
    return {"kind": detected.kind, "name": detected.name, "memory": detected.memory, "found": found}


def plan(config: dict[str, object]) -> Result:
    """Estimate the memory of a run, and of the largest batch that fits, on this device."""
    from utils.training import memory
    from utils.training.errors import NotEnoughMemoryError

    settings = TrainConfig.parse(config, source="The form")
    device = memory.Device.detect(settings)
    configured = memory.estimate(settings, device)
    result = {
        "device": device.name,
        "batch": memory.batch_description(settings),
        "peak": configured.needed,
        "available": configured.available,
        "parts": {name: size for name, size in configured.parts.items() if size},
        "tuned": None,
    }
    try:
        fitted, tuned = memory.fit_batch(settings, device)
        result["tuned"] = {"batch": fitted.batch_size, "steps": fitted.grad_acumm, "peak": tuned.needed}
    except NotEnoughMemoryError as error:
        result["advice"] = error.hint
    return result


def optimizer(config: dict[str, object]) -> Result:
    """Refuse an optimizer that the device of a run does not have."""
    from utils.training.optimizers import require_optimizer

    require_optimizer(TrainConfig.parse(config, source="The form"))
    return {}


def check(config: dict[str, object], project: str) -> Result:
    """Return findings about the dataset of a run."""
    settings = TrainConfig.parse(config, source="The form")
    opened = Project(Path(project))
    clips = metadata.read_clips(settings, opened.dataset)
    findings = [
        *_length_findings(clips, settings.max_audio_length),
        *_token_findings(settings, clips.train, clips.clips, opened),
    ]
    if clips.problems:
        lines = tuple(map(str, clips.problems[:MAX_NAMED]))
        findings.append(DatasetFinding("invalid_lines", "warn", len(clips.problems), names=lines))
    there = metadata.read_language(clips.folder)
    if canonical(there) != settings.language:
        findings.append(DatasetFinding("language", "warn", 1, detail=there))
    return {"findings": [to_json(finding) for finding in findings]}


def _length_findings(clips: "ClipLists", maximum: float) -> list[DatasetFinding]:
    hours, minutes = (total_seconds(part) / 60 for part in (clips.train, clips.eval))
    hours /= 60
    longest = max(clip.span.seconds for clip in clips.clips)
    little = "warn" if hours < LITTLE_HOURS else "pass"
    return [
        DatasetFinding("training", little, len(clips.train), hours, longest),
        DatasetFinding("evaluation", "pass", len(clips.eval), minutes),
        _named("long_clips", [clip for clip in clips.clips if clip.span.seconds > maximum]),
    ]


def _named(check: DatasetCheck, clips: Sequence["Clip"], detail: str = "", verdict: str = "warn") -> DatasetFinding:
    names = tuple(clip.audio for clip in clips[:MAX_NAMED])
    return DatasetFinding(check, verdict if clips else "pass", len(clips), names=names, detail=detail)


def _token_findings(
    config: TrainConfig, train: Sequence["Clip"], clips: Sequence["Clip"], project: Project
) -> list[DatasetFinding]:
    tokenizer, missing = _tokenizer(config, train, project)
    if tokenizer is None:
        return [DatasetFinding("no_vocabulary", "warn", 1, detail=missing)]
    texts = [(clip, tokenizer.tokenize(clip.text, config.language)) for clip in clips]
    symbols = DatasetFinding("known_symbols", "pass", max((len(text.ids) for _, text in texts), default=0))
    if lacking := [clip for clip, text in texts if text.unknown]:
        unknown = " ".join(dict.fromkeys(symbol for _, text in texts for symbol in text.unknown))
        symbols = _named("unknown_symbols", lacking, unknown, "fail")
    long = [clip for clip, text in texts if len(text.ids) > config.max_text_length]
    return [symbols, _named("long_texts", long)]


def _tokenizer(config: TrainConfig, clips: Iterable["Clip"], project: Project) -> tuple["Tokenizer | None", str]:
    """Return the tokenizer as training would make it, or the path of the missing vocabulary."""
    from utils.training.preparation import text_mode, tokenizer_for
    from utils.xtts import pronunciations

    if config.custom_model:
        own = expand_home(config.custom_model)
        base = own if own.is_dir() else own.parent
    else:
        base = TINY_MODEL if config.version == TINY else paths.MODELS / config.version
    if not (base / VOCABULARY_FILE).is_file():
        return None, str(base / VOCABULARY_FILE)
    texts = (clip.text for clip in clips)
    corrected = pronunciations.overrides(project.pronunciations)
    mode, backend = text_mode(config), config.g2p_backend
    return tokenizer_for(base, config.language, texts, mode, backend, corrected, allow_missing=True), ""


QUERIES: dict[str, Callable[..., Result]] = {query.__name__: query for query in (device, plan, optimizer, check)}


def main(arguments: list[str]) -> int:
    """Answer one query; an error is a result too."""
    try:
        result = QUERIES[arguments[0]](**json.load(sys.stdin))
    except AmharicTtsError as error:
        result = error_to_json(error)
    sys.stdout.write(f"\n{json.dumps(result, ensure_ascii=False)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
