"""The clips that a run trains on and is judged by: what the two lists name, with a content hash for each."""

import dataclasses
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from utils.config import TrainConfig
from utils.core.errors import DataError
from utils.core.paths import Project, resolve_inside
from utils.dataset import list_files, metadata
from utils.dataset.clip import Clip, Span, Split
from utils.dataset.lengths import header_seconds
from utils.dataset.store import Store

CURE = "Create a dataset with: python -m utils prepare."


@dataclass(frozen=True)
class Material:
    """What a run works with.

    Attributes:
        folder: The dataset folder, which the audio paths start from and which holds the features.
        train: Clips to learn from.
        held_back: Clips to judge by, never learnt from.
        faults: Why other lines of the lists are left out, in sentences.
    """

    folder: Path
    train: tuple[Clip, ...]
    held_back: tuple[Clip, ...]
    faults: tuple[str, ...] = ()

    @property
    def clips(self) -> list[Clip]:
        """Return all clips."""
        return [*self.train, *self.held_back]

    @property
    def voice(self) -> Path:
        """Return the clip that a voice is heard best in: the longest of those that are never learnt from."""
        return resolve_inside(self.folder, max(self.held_back, key=lambda clip: clip.span.seconds).audio)


def fingerprint(clips: list[Clip]) -> str:
    """Hash the sounds, texts and sides of clips in their order: the course of a run depends on them."""
    digest = hashlib.blake2b(digest_size=8)
    for clip in clips:
        digest.update(f"{clip.content}\x1f{clip.text}\x1f{clip.split}\n".encode())
    return digest.hexdigest()


def read(config: TrainConfig, project: Project) -> Material:
    """Read both lists; those of the project unless the settings name others."""
    wanted: dict[Split, str] = {"train": config.train_csv, "eval": config.eval_csv}
    paths = {
        split: Path(named) if named else project.dataset / metadata.FILES[split] for split, named in wanted.items()
    }
    metadata.write_lists(project.dataset)
    for path in paths.values():
        if not path.is_file():
            raise DataError(f"The list {path} does not exist.", hint=CURE)
    folder = paths["train"].resolve().parent
    if paths["eval"].resolve().parent != folder:
        raise DataError(
            f"{paths['train']} and {paths['eval']} are in different folders.",
            hint="Put both lists in the folder that contains wavs/.",
        )
    known = _known(folder)
    faults: list[str] = []
    sides = {split: tuple(_clips(path, split, known, faults)) for split, path in paths.items()}
    for split, path in paths.items():
        if not sides[split]:
            raise DataError(f"{path} has no usable clips. {' '.join(faults[:3])}", hint=CURE)
    _refuse_shared(sides["train"], sides["eval"])
    return Material(folder, sides["train"], sides["eval"], tuple(faults))


def _known(folder: Path) -> dict[str, Clip]:
    """Return the clips of the manifest by the path of their audio; a dataset of other programs has none."""
    return {clip.audio: clip for clip in Store(folder).clips("status = 'kept'")} if Store(folder).exists else {}


def _clips(path: Path, split: Split, known: dict[str, Clip], faults: list[str]) -> Iterator[Clip]:
    listing = list_files.read_listing(path)
    faults += [f"{path.name}, {fault}" for fault in listing.problems]
    for row in listing.clips:
        name = row.audio.replace("\\", "/")
        clip = known.get(name) or _stranger(path.parent, name)
        if clip is None:
            faults.append(f"{path.name}, line {row.line}: {name} cannot be read.")
        elif not row.text.strip():
            faults.append(f"{path.name}, line {row.line}: {name} has no text.")
        else:
            # the list may have been corrected by hand; where it was not, the manifest has the text as it was written
            text = clip.text if metadata.plain(clip.text) == row.text else row.text
            yield dataclasses.replace(clip, text=text, speaker=row.speaker or clip.speaker, split=split)


def _stranger(folder: Path, name: str) -> Clip | None:
    """Make a clip of a file that no manifest knows."""
    seconds = header_seconds(folder / name)
    if seconds is None:
        return None
    with (folder / name).open("rb") as file:
        content = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    return Clip(content, content, name, Span(0.0, seconds), "speaker", "", name, content)


def _refuse_shared(train: tuple[Clip, ...], held_back: tuple[Clip, ...]) -> None:
    """Refuse lists that share a sound: the evaluation would praise what was learnt by heart."""
    both = {clip.content for clip in train} & {clip.content for clip in held_back}
    if both:
        name = next(clip.audio for clip in held_back if clip.content in both)
        raise DataError(
            f"{len(both)} clips are in both lists, such as {name}.", hint="Remove them from the evaluation list."
        )
