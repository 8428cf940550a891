"""Queries that need torch, answered by a child process: the page itself never loads torch.

The child is ``python -m utils.ui.tabs.training.queries NAME``. It reads arguments as JSON from stdin and prints the
result as one line of JSON.
"""

import contextlib
import functools
import importlib.util
import json
import math
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.config import TrainConfig
from utils.config.flags import command_line
from utils.core import paths
from utils.core.errors import AmharicTtsError, RunBusyError
from utils.core.paths import Project
from utils.runs.background_jobs import JobStoppedError
from utils.runs.processes import ChildError, query, read_lines
from utils.xtts.files import SETTINGS_FILE, TINY, VOCABULARY_FILE

if TYPE_CHECKING:
    from utils.dataset.clip import Clip
    from utils.xtts.tokenizer import Tokenizer

RETRY_SECONDS = 60.0  # after a query that failed
TIMEOUT = 900.0  # seconds; for a check of 50,000 clips, or an export to a slow disk
MAX_NAMED = 5  # clips that a finding names

Result = dict[str, Any]
PresetPeak = tuple[str, int, int, int]  # name, batch size, accumulated batches, peak in bytes


# In the page


def ask(name: str, **arguments: object) -> Result:
    """Run a query of ``QUERIES`` in a child process; its error is raised here."""
    text = json.dumps(arguments, default=lambda config: config.model_dump(mode="json"))
    return query(["-m", __name__, name], read_result, timeout=TIMEOUT, text=text)


def read_result(output: str) -> Result:
    """Read the last line that the child printed; raise the error in it."""
    result = json.loads(output.strip().splitlines()[-1])
    if (error := result.get("error")) is not None:
        raise AmharicTtsError(str(error), hint=str(result.get("hint", "")))
    return dict(result)


@functools.lru_cache(maxsize=16)
def preset_peaks(names: tuple[str, ...], version: str, custom_model: str, max_audio_length: float) -> list[PresetPeak]:
    """Ask for the memory of presets with this model and these clips, which takes many seconds."""
    same = {"version": version, "custom_model": custom_model, "max_audio_length": max_audio_length}
    return list(map(tuple, ask("presets", names=names, same=same)["peaks"]))


class CachedQuery:
    """A query whose result does not change while the page runs; asked in the background."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.result: Result | None = None
        self.error: AmharicTtsError | None = None
        self._lock = threading.Lock()
        self._next = 0.0  # when it may be asked, on the monotonic clock

    def get(self) -> Result | None:
        """Return the result if it is known; else ask for it."""
        with self._lock:
            if time.monotonic() >= self._next:
                self._next = math.inf
                threading.Thread(target=self._ask, name=f"query-{self.name}", daemon=True).start()
        return self.result

    def _ask(self) -> None:
        try:
            self.result, self.error = ask(self.name), None
        except AmharicTtsError as error:
            self.error, self._next = error, time.monotonic() + RETRY_SECONDS


class MemoryTest:
    """The memory test; only one runs at a time, since two would measure each other."""

    def __init__(self) -> None:
        self._running = threading.Lock()
        self._cancelled = threading.Event()

    def run(self, config: TrainConfig) -> Iterator[str]:
        """Run ``python -m utils memory-test`` and yield everything printed so far, after each line."""
        if not self._running.acquire(blocking=False):
            raise RunBusyError("A memory test is running.", hint="Wait until it ends, or stop it.")
        self._cancelled.clear()
        text = ""
        try:
            for line in read_lines(shlex.split(command_line("memory-test", config))[1:], check=self._check):
                text += f"{line}\n"
                yield text
        except (JobStoppedError, ChildError):  # the output says why it failed
            return
        finally:
            self._running.release()

    def stop(self) -> None:
        self._cancelled.set()

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise JobStoppedError


# In the child


def device() -> Result:
    import torch

    from utils.training import memory
    from utils.training.speedups.gpu import CAPABILITY
    from utils.xtts.device import choose_precision

    detected = memory.Device.detect(TrainConfig())
    on_gpu = detected.kind == "cuda"
    return {
        "kind": detected.kind,
        "name": detected.name,
        "memory": detected.memory,
        "half": choose_precision(detected.kind).dtype,
        "tf32": on_gpu and torch.cuda.get_device_capability() >= CAPABILITY,
        "compiler": any(shutil.which(name) for name in ("c++", "g++", "clang++", "cl")),
        "bitsandbytes": importlib.util.find_spec("bitsandbytes") is not None,
    }


def plan(config: dict[str, object]) -> Result:
    """Estimate the memory of a run, and of the largest batch that fits, on this device."""
    from utils.training import memory

    settings = TrainConfig.parse(config, source="The form")
    device = memory.Device.detect(settings)
    configured = memory.estimate(settings, device)
    result: Result = {
        "device": device.name,
        "batch": memory.batch_description(settings),
        "peak": configured.peak,
        "available": configured.available,
        "parts": [[name, size, memory.PARTS[name]] for name, size in configured.parts.items() if size],
        "tuned": None,
    }
    try:
        fitted, tuned = memory.fit_batch(settings, device)
        result["tuned"] = {"batch": fitted.batch_size, "steps": fitted.grad_acumm, "peak": tuned.peak}
    except memory.NotEnoughMemoryError as error:
        result["advice"] = error.hint
    return result


def presets(names: list[str], same: dict[str, object]) -> Result:
    """Estimate presets with the model and the clips of the form; one that the model does not support is left out."""
    from utils.training import memory

    device, peaks = memory.Device.detect(TrainConfig()), []
    for name in names:
        config = memory.changed(TrainConfig.load(paths.CONFIGS / f"{name}.yaml"), same)
        with contextlib.suppress(AmharicTtsError):  # such as more frozen layers than a small model has
            peaks.append((name, config.batch_size, config.grad_acumm, memory.estimate(config, device).peak))
    return {"peaks": peaks}


def check(config: dict[str, object], project: str) -> Result:
    from utils.dataset import metadata

    settings = TrainConfig.parse(config, source="The form")
    clips = metadata.read_clips(settings, Project(Path(project)))
    tokenizer, missing = _tokenizer(settings, clips.train, Project(Path(project)))
    return {
        "train": len(clips.train),
        "eval": len(clips.eval),
        "hours": sum(clip.span.seconds for clip in clips.train) / 3600,
        "eval_minutes": sum(clip.span.seconds for clip in clips.eval) / 60,
        "longest": max(clip.span.seconds for clip in clips.clips),
        "language": metadata.read_language(clips.folder),
        "problems": list(clips.problems[:MAX_NAMED]),
        "problem_count": len(clips.problems),
        "too_long": _named(clip for clip in clips.clips if clip.span.seconds > settings.max_audio_length),
        "tokens": _tokens(settings, clips.clips, tokenizer) if tokenizer else None,
        "missing_vocabulary": missing,
    }


def _tokenizer(config: TrainConfig, clips: Iterable["Clip"], project: Project) -> tuple["Tokenizer | None", str]:
    """Return the tokenizer as training would make it, or the path of the missing vocabulary."""
    from utils.training.preparation import text_mode, tokenizer_for
    from utils.xtts import pronunciations
    from utils.xtts.tokenizer import Tokenizer, prepare_tokenizer
    from utils.xtts.vocabulary import Vocabulary

    texts = (clip.text for clip in clips)
    mode, backend, corrected = text_mode(config), config.g2p_backend, pronunciations.overrides(project)
    own = Path(config.custom_model).expanduser() if config.custom_model else None
    folder = (own if own.is_dir() else own.parent) if own else paths.MODELS / config.version
    if own and (folder / SETTINGS_FILE).is_file():
        return Tokenizer.load(folder).with_pronunciations(corrected), ""
    if not own and config.version == TINY:
        return tokenizer_for(paths.TINY_MODEL, config.language, texts, mode, backend, corrected), ""
    if not (folder / VOCABULARY_FILE).is_file():
        return None, str(folder / VOCABULARY_FILE)
    base = Vocabulary.load(folder / VOCABULARY_FILE)
    options: Any = {"mode": mode, "backend": backend, "overrides": corrected}
    return prepare_tokenizer(base, config.language, texts=texts, allow_missing=True, **options), ""


def _tokens(config: TrainConfig, clips: Iterable["Clip"], tokenizer: "Tokenizer") -> Result:
    texts = [(clip, tokenizer.tokenize(clip.text, config.language)) for clip in clips]
    return {
        "unknown": list(dict.fromkeys(symbol for _, text in texts for symbol in text.unknown)),
        "lacking": _named(clip for clip, text in texts if text.unknown),
        "long": _named(clip for clip, text in texts if len(text.ids) > config.max_text_length),
        "most": max((len(text.ids) for _, text in texts), default=0),
    }


def _named(clips: Iterable["Clip"]) -> Result:
    names = [clip.audio for clip in clips]
    return {"count": len(names), "named": names[:MAX_NAMED]}


def export(run: str, step: int, ready: str, *, half: bool) -> Result:
    from utils.speech.loading import training_reference
    from utils.xtts import checkpoints
    from utils.xtts.export import promote

    chosen = checkpoints.find(Path(run), step)
    voice = training_reference(chosen)
    folder = promote(chosen, Path(ready), voice, half=half)
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    return {"folder": str(folder), "size": size, "voice": str(voice or "")}


QUERIES: dict[str, Callable[..., Result]] = {query.__name__: query for query in (device, plan, presets, check, export)}


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
