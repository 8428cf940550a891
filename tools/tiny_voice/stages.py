"""Stages that run once: each saves its results and a hash of everything it depends on."""

import dataclasses
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tools.tiny_voice.continuing import fingerprint
from tools.tiny_voice.recipe import Recipe
from utils.core.storage import file_lock, make_folder, read_json, write_atomically

DONE, BEGUN = "done.json", "begun.json"
FORMAT = 1  # increase when the stages change

PROGRESS_SECONDS = 10.0  # between two progress lines

T = TypeVar("T")
Figures = Mapping[str, Any]


@dataclass
class Progress:
    """Reports the progress of a stage.

    Attributes:
        stage: Its name.
        tell: Called with each line.
    """

    stage: str
    tell: Callable[[str], None]
    _last: float = field(default_factory=time.monotonic)

    def say(self, sentence: str) -> None:
        """Report a message."""
        self.tell(f"{self.stage}: {sentence}")

    def at(self, done: int, total: int, seconds_left: float, more: str = "") -> None:
        """Report progress, at most every ten seconds."""
        if time.monotonic() - self._last >= PROGRESS_SECONDS or done == total:
            self._last = time.monotonic()
            self.say(f"{done:,} of {total:,}, {format_duration(seconds_left)} left{', ' if more else ''}{more}")

    def over(self, items: Iterable[T], total: int) -> Iterator[T]:
        """Yield the items and report how many are done."""
        began = time.monotonic()
        for done, item in enumerate(items, 1):
            yield item
            self.at(done, total, (time.monotonic() - began) * (total - done) / done)


def format_duration(seconds: float) -> str:
    """Format a duration."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


@dataclass(frozen=True)
class BuildContext:
    """Everything a stage needs to know.

    Attributes:
        root: Folder with one subfolder for each stage.
        recipe: All settings.
        device: Torch device.
        tell: Called with progress messages.
        base: Folder of an earlier voice whose training is continued.
    """

    root: Path
    recipe: Recipe
    device: str
    tell: Callable[[str], None]
    base: Path | None = None

    def folder(self, stage: str) -> Path:
        """Return the folder of a stage."""
        return self.root / stage

    def progress(self, stage: str) -> Progress:
        """Return a progress reporter for a stage."""
        return Progress(stage, self.tell)


@dataclass(frozen=True)
class Stage:
    """One step of the build.

    Attributes:
        name: Name of the stage and its folder.
        after: Stages it depends on.
        settings: Parts of the recipe it depends on.
        work: Runs the stage and returns its results; continues an interrupted run.
        files: Other files it depends on.
        continues: Whether it can start from the weights of an earlier voice.
    """

    name: str
    after: tuple[str, ...]
    settings: tuple[str, ...]
    work: Callable[[BuildContext], Figures]
    files: tuple[Path, ...] = ()
    continues: bool = False


def run(context: BuildContext, stages: Sequence[Stage], selected: Collection[str] = ()) -> None:
    """Run the selected stages (default: all) that are not done yet; others may run in another process."""
    known = [stage.name for stage in stages]
    if unknown := sorted(set(selected) - set(known)):
        raise SystemExit(f"Unknown stage: {', '.join(unknown)}. The stages are {', '.join(known)}.")
    make_folder(context.root)
    keys: dict[str, str] = {}
    for stage in stages:
        keys[stage.name] = key = key_of(context, stage, keys)
        if selected and stage.name not in selected:
            continue
        _require_earlier_stages(context, stage, keys)
        with file_lock(context.root / f".{stage.name}.lock"):
            if is_done(context, stage.name, key):
                context.tell(f"{stage.name}: already done")
            else:
                _run_stage(context, stage, key)


def key_of(context: BuildContext, stage: Stage, keys: Mapping[str, str]) -> str:
    """Hash everything that the result of a stage depends on."""
    settings = {name: dataclasses.asdict(getattr(context.recipe, name)) for name in stage.settings}
    inputs = {"format": FORMAT, "settings": settings, "after": {name: keys[name] for name in stage.after}}
    if context.base and stage.continues:
        inputs["base"] = fingerprint(context.base)
    digest = hashlib.blake2b(json.dumps(inputs, sort_keys=True).encode(), digest_size=12)
    for path in stage.files:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_done(context: BuildContext, name: str, key: str) -> bool:
    """Return whether a stage was finished with these inputs."""
    return str(_read(context.folder(name) / DONE).get("key", "")) == key


def figures(root: Path, name: str) -> dict[str, Any]:
    """Return the results of a finished stage; empty when it is not finished."""
    done = _read(root / name / DONE)
    return {**done.get("figures", {}), "seconds": done["seconds"]} if "seconds" in done else {}


def _run_stage(context: BuildContext, stage: Stage, key: str) -> None:
    folder = context.folder(stage.name)
    begun = _read(folder / BEGUN)
    if begun.get("key") != key and folder.exists():
        shutil.rmtree(folder)  # its inputs have changed
        begun = {}
    make_folder(folder)
    spent = float(begun.get("seconds", 0.0))
    write_atomically(folder / BEGUN, json.dumps({"key": key, "seconds": spent}))
    context.tell(f"{stage.name}: started")
    started = time.monotonic()
    try:
        results = stage.work(context)
    finally:
        spent += time.monotonic() - started
        write_atomically(folder / BEGUN, json.dumps({"key": key, "seconds": spent}))
    done = {"key": key, "seconds": round(spent, 1), "figures": results}
    write_atomically(folder / DONE, json.dumps(done, ensure_ascii=False, indent=1))
    context.tell(f"{stage.name}: done in {format_duration(spent)}")


def _require_earlier_stages(context: BuildContext, stage: Stage, keys: Mapping[str, str]) -> None:
    if missing := [name for name in stage.after if not is_done(context, name, keys[name])]:
        raise SystemExit(f"The stage {stage.name} needs {' and '.join(missing)} first. Name those stages too.")


def _read(path: Path) -> dict[str, Any]:
    try:
        content = read_json(path)
    except (OSError, ValueError):  # not there yet
        return {}
    return content if isinstance(content, dict) else {}
