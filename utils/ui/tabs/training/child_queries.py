"""The child's side of the page's questions: reads JSON, loads torch, prints one line of JSON.

The page calls it as ``python -m utils.ui.tabs.training.child_queries QUESTION``.
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
from utils.ui.tabs.training.presets import TIERS, load
from utils.xtts.files import TINY, TINY_RANDOM

if TYPE_CHECKING:
    from utils.dataset.clip import Clip
    from utils.training.memory import Device
    from utils.xtts.tokenizer import Tokenizer

MOST_NAMED = 5  # clips that a finding names

Answer = dict[str, Any]


def device() -> Answer:
    """Say what this device can do."""
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


def plan(config: dict[str, object]) -> Answer:
    """Estimate the memory of a run, of the largest batch that fits, and of each preset, on this device."""
    from utils.training import memory

    settings = TrainConfig.parse(config, source="The form")
    device = memory.Device.detect(settings)
    configured = memory.estimate(settings, device)
    answer: Answer = {
        "device": device.name,
        "batch": memory.batch_description(settings),
        "peak": configured.peak,
        "available": configured.available,
        "parts": [[name, size, memory.PARTS[name]] for name, size in configured.parts.items() if size],
        "tiers": [_tier(name, settings, device) for name in TIERS],
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
    """Estimate a preset with the model and the clips of the form."""
    from utils.training import memory

    same = {field: getattr(settings, field) for field in ("version", "custom_model", "max_audio_length")}
    config = memory.changed(load(name), same)
    estimate = memory.estimate(config, device)
    return [name, config.batch_size, config.grad_acumm, estimate.peak, estimate.fits]


def check(config: dict[str, object], project: str) -> Answer:
    """Look at every clip that a run would learn from or be judged by."""
    from utils.dataset import clip_lists
    from utils.dataset.metadata import read_language

    wanted = TrainConfig.parse(config, source="The form")
    clips = clip_lists.read(wanted, Project(Path(project)))
    reading, why_not = _reading(wanted, clips.train)
    return {
        "train": len(clips.train),
        "eval": len(clips.held_back),
        "hours": sum(clip.span.seconds for clip in clips.train) / 3600,
        "eval_minutes": sum(clip.span.seconds for clip in clips.held_back) / 60,
        "longest": max(clip.span.seconds for clip in clips.clips),
        "language": read_language(clips.folder),
        "faults": list(clips.faults[:MOST_NAMED]),
        "fault_count": len(clips.faults),
        "too_long": _named(clip for clip in clips.clips if clip.span.seconds > wanted.max_audio_length),
        "tokens": _tokens(wanted, clips.clips, reading) if reading else None,
        "unread": why_not,
    }


def _reading(config: TrainConfig, clips: Iterable["Clip"]) -> tuple["Tokenizer | None", str]:
    """Open the tokenizer as training would make it; else say which vocabulary is not here."""
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


def _tokens(config: TrainConfig, clips: Iterable["Clip"], reading: "Tokenizer") -> Answer:
    unknown: dict[str, int] = {}
    lacking, long = [], []
    most = 0
    for clip in clips:
        read = reading.tokenize(clip.text, config.language)
        most = max(most, len(read.ids))
        for symbol in read.unknown:
            unknown[symbol] = unknown.get(symbol, 0) + 1
        if read.unknown:
            lacking.append(clip)
        if len(read.ids) > config.max_text_length:
            long.append(clip)
    return {"unknown": unknown, "lacking": _named(lacking), "long": _named(long), "most": most}


def _named(clips: Iterable["Clip"]) -> Answer:
    names = [clip.audio for clip in clips]
    return {"count": len(names), "named": names[:MOST_NAMED]}


def optimise(run: str, step: int, ready: str, *, half: bool) -> Answer:
    """Make a checkpoint the finished model."""
    from utils.speech.loaded_model import training_reference
    from utils.xtts import checkpoints
    from utils.xtts.finalize import promote

    chosen = checkpoints.find(Path(run), step)
    voice = training_reference(chosen)
    folder = promote(chosen, Path(ready), voice, half=half)
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    return {"folder": str(folder), "size": size, "voice": str(voice or "")}


ANSWERS: dict[str, Callable[..., Answer]] = {
    "device": device,
    "plan": plan,
    "check": check,
    "optimise": optimise,
}


def main(words: list[str]) -> int:
    """Answer one question; whatever goes wrong is an answer too."""
    try:
        answer = ANSWERS[words[0]](**json.load(sys.stdin))
    except AmharicTtsError as error:
        answer = {"error": error.message, "hint": error.hint}
    sys.stdout.write(f"\n{json.dumps(answer, ensure_ascii=False)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
