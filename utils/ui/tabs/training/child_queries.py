"""Results the queries of the page that need torch: ``python -m utils.ui.tabs.training.child_queries QUERY``.

Reads arguments as JSON from stdin and prints the result as one line of JSON.
"""

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.config import TrainConfig
from utils.core import paths
from utils.core.errors import AmharicTtsError
from utils.core.paths import Project
from utils.ui.tabs.training.settings import TIERS, load_preset
from utils.xtts.files import TINY, TINY_RANDOM

if TYPE_CHECKING:
    from utils.dataset.clip import Clip
    from utils.training.memory import Device
    from utils.xtts.tokenizer import Tokenizer

MAX_NAMED = 5  # clips that a finding names

Result = dict[str, Any]


def device() -> Result:
    """Return what this device supports."""
    import torch

    from utils.training import memory
    from utils.training.speedups.matmul import CAPABILITY
    from utils.xtts.dtypes import choose_precision

    found = memory.Device.detect(TrainConfig())
    on_gpu = found.kind == "cuda"
    return {
        "kind": found.kind,
        "name": found.name,
        "memory": found.memory,
        "half": choose_precision(found.kind).dtype,
        "tf32": on_gpu and torch.cuda.get_device_capability() >= CAPABILITY,
        "gpus": torch.cuda.device_count(),
        "compiler": any(shutil.which(name) for name in ("c++", "g++", "clang++", "cl")),
        "bitsandbytes": importlib.util.find_spec("bitsandbytes") is not None,
    }


def plan(config: dict[str, object]) -> Result:
    """Estimate the memory of a run, of the largest batch that fits, and of each preset, on this device."""
    from utils.training import memory

    settings = TrainConfig.parse(config, source="The form")
    device = memory.Device.detect(settings)
    configured = memory.estimate(settings, device)
    answer: Result = {
        "device": device.name,
        "batch": memory.batch_description(settings),
        "peak": configured.peak,
        "available": configured.available,
        "parts": [[name, size, memory.PARTS[name]] for name, size in configured.parts.items() if size],
        "tiers": [row for name in TIERS if (row := _tier(name, settings, device))],
        "tuned": None,
        "advice": "",
    }
    try:
        fitted, result = memory.fit_batch(settings, device)
        answer["tuned"] = {name: getattr(fitted, name) for name in ("batch_size", "grad_acumm", "batch_tokens")}
        answer["tuned_peak"] = result.peak
    except memory.NotEnoughMemoryError as error:
        answer["advice"] = error.hint
    return answer


def _tier(name: str, settings: TrainConfig, device: "Device") -> list[object]:
    """Estimate a preset with the model and the clips of the form; nothing for one that the model does not support."""
    from utils.training import memory

    same = {field: getattr(settings, field) for field in ("version", "custom_model", "max_audio_length")}
    config = memory.changed(load_preset(name), same)
    try:
        estimate = memory.estimate(config, device)
    except AmharicTtsError:  # such as more frozen layers than a small model has
        return []
    return [name, config.batch_size, config.grad_acumm, estimate.peak, estimate.fits]


def check(config: dict[str, object], project: str) -> Result:
    """Check every training and evaluation clip."""
    from utils.dataset import clip_lists
    from utils.dataset.metadata import read_language

    wanted = TrainConfig.parse(config, source="The form")
    clips = clip_lists.read(wanted, Project(Path(project)))
    tokenizer, missing = _tokenizer(wanted, clips.train)
    return {
        "train": len(clips.train),
        "eval": len(clips.held_back),
        "hours": sum(clip.span.seconds for clip in clips.train) / 3600,
        "eval_minutes": sum(clip.span.seconds for clip in clips.held_back) / 60,
        "longest": max(clip.span.seconds for clip in clips.clips),
        "language": read_language(clips.folder),
        "problems": list(clips.faults[:MAX_NAMED]),
        "problem_count": len(clips.faults),
        "too_long": _named(clip for clip in clips.clips if clip.span.seconds > wanted.max_audio_length),
        "tokens": _tokens(wanted, clips.clips, tokenizer) if tokenizer else None,
        "missing_vocabulary": missing,
    }


def _tokenizer(config: TrainConfig, clips: Iterable["Clip"]) -> tuple["Tokenizer | None", str]:
    """Return the tokenizer as training would make it, or the path of the missing vocabulary."""
    from utils.training.preparation import text_mode, tokenizer_for
    from utils.xtts.files import SETTINGS_FILE, VOCABULARY_FILE
    from utils.xtts.random_model import RandomModelSize, small_vocabulary
    from utils.xtts.tokenizer import Tokenizer, prepare_tokenizer
    from utils.xtts.vocabulary import Vocabulary

    texts = (clip.text for clip in clips)
    own = Path(config.custom_model).expanduser() if config.custom_model else None
    folder = (own if own.is_dir() else own.parent) if own else paths.MODELS / config.version
    if own and (folder / SETTINGS_FILE).is_file():
        return Tokenizer.load(folder), ""
    if not own and config.version == TINY:
        return tokenizer_for(paths.TINY_MODEL, config.language, texts, text_mode(config)), ""
    if not own and config.version == TINY_RANDOM:
        base = small_vocabulary(RandomModelSize().tokens)
    elif (folder / VOCABULARY_FILE).is_file():
        base = Vocabulary.load(folder / VOCABULARY_FILE)
    else:
        return None, str(folder / VOCABULARY_FILE)
    return prepare_tokenizer(base, config.language, mode=text_mode(config), texts=texts, allow_missing=True), ""


def _tokens(config: TrainConfig, clips: Iterable["Clip"], tokenizer: "Tokenizer") -> Result:
    unknown: dict[str, int] = {}
    lacking, long = [], []
    most = 0
    for clip in clips:
        read = tokenizer.tokenize(clip.text, config.language)
        most = max(most, len(read.ids))
        for symbol in read.unknown:
            unknown[symbol] = unknown.get(symbol, 0) + 1
        if read.unknown:
            lacking.append(clip)
        if len(read.ids) > config.max_text_length:
            long.append(clip)
    return {"unknown": unknown, "lacking": _named(lacking), "long": _named(long), "most": most}


def _named(clips: Iterable["Clip"]) -> Result:
    names = [clip.audio for clip in clips]
    return {"count": len(names), "named": names[:MAX_NAMED]}


def export(run: str, step: int, ready: str, *, half: bool) -> Result:
    """Export a checkpoint as the finished model."""
    from utils.speech.loaded_model import training_reference
    from utils.xtts import checkpoints
    from utils.xtts.finalize import promote

    chosen = checkpoints.find(Path(run), step)
    voice = training_reference(chosen)
    folder = promote(chosen, Path(ready), voice, half=half)
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    return {"folder": str(folder), "size": size, "voice": str(voice or "")}


QUERIES: dict[str, Callable[..., Result]] = {
    "device": device,
    "plan": plan,
    "check": check,
    "export": export,
}


def main(arguments: list[str]) -> int:
    """Answer one query; an error is a result too."""
    try:
        result = QUERIES[arguments[0]](**json.load(sys.stdin))
    except AmharicTtsError as error:
        result = {"error": error.message, "hint": error.hint}
    sys.stdout.write(f"\n{json.dumps(result, ensure_ascii=False)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
