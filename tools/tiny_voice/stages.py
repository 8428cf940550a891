"""Stages that are done once: each leaves its figures, and a hash of all that it depended on."""

import dataclasses
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.tiny_voice.progress import Progress, spelled
from tools.tiny_voice.recipe import Recipe
from utils.core.errors import ConfigError
from utils.core.storage import file_lock, make_folder, read_json, write_atomically

DONE, BEGUN = "done.json", "begun.json"
FORMAT = 1  # counts changes of what the stages make

Figures = Mapping[str, Any]


@dataclass(frozen=True)
class Workshop:
    """Where the voice is made.

    Attributes:
        root: Holds one folder a stage.
        recipe: All settings.
        device: Where to compute, as torch calls it.
        tell: Hears how far the work is.
    """

    root: Path
    recipe: Recipe
    device: str
    tell: Callable[[str], None]

    def folder(self, stage: str) -> Path:
        """Return the folder of a stage."""
        return self.root / stage

    def progress(self, stage: str) -> Progress:
        """Return what the stage tells its progress to."""
        return Progress(stage, self.tell)


@dataclass(frozen=True)
class Stage:
    """One step of the work.

    Attributes:
        name: Of the stage and its folder.
        after: Stages whose results it reads.
        settings: The parts of the recipe that it depends on.
        work: Does it and returns its figures; it goes on where it was interrupted.
        files: What else it reads.
    """

    name: str
    after: tuple[str, ...]
    settings: tuple[str, ...]
    work: Callable[[Workshop], Figures]
    files: tuple[Path, ...] = ()


def run(shop: Workshop, stages: Sequence[Stage], wanted: Collection[str] = ()) -> None:
    """Do the stages that are wanted, in their order, where they are not done yet; none named: all."""
    known = [stage.name for stage in stages]
    if unknown := sorted(set(wanted) - set(known)):
        raise ConfigError(f"There is no stage {' or '.join(unknown)}.", hint=f"There are: {', '.join(known)}.")
    make_folder(shop.root)
    keys: dict[str, str] = {}
    with file_lock(shop.root / ".lock"):
        for stage in stages:
            keys[stage.name] = key = key_of(shop.recipe, stage, keys)
            if wanted and stage.name not in wanted:
                continue
            _refuse_gaps(shop, stage, keys)
            if is_done(shop, stage.name, key):
                shop.tell(f"{stage.name}: done already")
            else:
                _work(shop, stage, key)


def key_of(recipe: Recipe, stage: Stage, keys: Mapping[str, str]) -> str:
    """Hash all that the result of a stage depends on."""
    settings = {name: dataclasses.asdict(getattr(recipe, name)) for name in stage.settings}
    told = {"format": FORMAT, "settings": settings, "after": {name: keys[name] for name in stage.after}}
    digest = hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=12)
    for path in stage.files:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_done(shop: Workshop, name: str, key: str) -> bool:
    """Tell whether a stage was finished from just these inputs."""
    return str(_read(shop.folder(name) / DONE).get("key", "")) == key


def figures(root: Path, name: str) -> dict[str, Any]:
    """Return the figures of a finished stage; empty when it is not finished."""
    found = _read(root / name / DONE)
    return {**found.get("figures", {}), "seconds": found["seconds"]} if "seconds" in found else {}


def _work(shop: Workshop, stage: Stage, key: str) -> None:
    folder = shop.folder(stage.name)
    begun = _read(folder / BEGUN)
    if begun.get("key") != key and folder.exists():
        shutil.rmtree(folder)  # it was made from other inputs, and nothing of it can be used
        begun = {}
    make_folder(folder)
    spent = float(begun.get("seconds", 0.0))
    write_atomically(folder / BEGUN, json.dumps({"key": key, "seconds": spent}))
    shop.tell(f"{stage.name}: begins")
    started = time.monotonic()
    try:
        found = stage.work(shop)
    finally:
        spent += time.monotonic() - started
        write_atomically(folder / BEGUN, json.dumps({"key": key, "seconds": spent}))
    told = {"key": key, "seconds": round(spent, 1), "figures": found}
    write_atomically(folder / DONE, json.dumps(told, ensure_ascii=False, indent=1))
    shop.tell(f"{stage.name}: done in {spelled(spent)}")


def _refuse_gaps(shop: Workshop, stage: Stage, keys: Mapping[str, str]) -> None:
    if missing := [name for name in stage.after if not is_done(shop, name, keys[name])]:
        raise ConfigError(
            f"The stage {stage.name} needs {' and '.join(missing)} first.", hint="Name those too, or no stage at all."
        )


def _read(path: Path) -> dict[str, Any]:
    try:
        found = read_json(path)
    except (OSError, ValueError):  # it is not there yet
        return {}
    return found if isinstance(found, dict) else {}
