"""Layouts that are damaged, renamed and mixed at random: each text is used, or its file is named."""

import contextlib
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.dataset import layouts
from tests.dataset.layouts import LAYOUTS, TEXTS
from tests.dataset.test_layouts import lose_a_recording, name_in_ethiopic, recode, rename_column, text_of
from utils.dataset.clip import ScanResult
from utils.dataset.readers.collection import hold_back
from utils.dataset.readers.facts import TextRepaired
from utils.dataset.readers.folder import is_media
from utils.dataset.sources import find_recordings

SEEDS, CASES = range(30, 50), 20  # 400 in all
OTHER = {"s1": "ወንዙ ከተራራው በፍጥነት ይወርዳል", "s2": "ነጋዴው ሱቁን ማለዳ ከፈተ", "s3": "ተማሪዎቹ መጽሐፍ አነበቡ"}
SENTENCES = (*TEXTS.values(), *OTHER.values())
Change = Callable[[Path, random.Random], None]


def texts_in(folder: Path) -> list[Path]:
    """Return the files that hold one of the sentences."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and sentences_in(path)]


def sentences_in(path: Path) -> set[str]:
    """Return the sentences in a file, as a person who opens it sees them."""
    raw = path.read_bytes()
    encodings = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
    plain = " ".join(raw.decode(encodings.get(raw[:2], "utf-8"), "ignore").split())
    return {text for text in SENTENCES if text in plain}


def rename_text(folder: Path, dice: random.Random) -> None:
    path = dice.choice(texts_in(folder))
    path.rename(path.with_name(f"{dice.choice(['notes', 'ማስታወሻ', 'x y'])}{path.suffix}"))


def change_suffix(folder: Path, dice: random.Random) -> None:
    path = dice.choice(texts_in(folder))
    path.rename(path.with_suffix(dice.choice([".txt", ".xyz", ".TSV", ".json", ".lab", ""])))


def move_text(folder: Path, dice: random.Random) -> None:
    path = dice.choice(texts_in(folder))
    (folder / "moved").mkdir(exist_ok=True)
    path.rename(folder / "moved" / path.name)


def lose_another_file(folder: Path, dice: random.Random) -> None:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not sentences_in(path)]
    if len(files) > 1:
        dice.choice(files).unlink()


def cut_text(folder: Path, dice: random.Random) -> None:
    path = dice.choice(texts_in(folder))
    raw = path.read_bytes()
    if path.name.endswith(".normalized.txt"):
        return  # the original beside it is longer then
    cut = raw[: len(raw) * dice.randint(50, 99) // 100]
    path.write_bytes(cut.rpartition(b"\n")[0] if b"|" in raw else cut)  # of two columns with one text, either may do


def change_a_line(folder: Path, dice: random.Random) -> None:
    path = dice.choice(texts_in(folder))
    if path.suffix in {".epub", ".tar", ".parquet", ".arrow"}:
        return
    lines = path.read_bytes().split(b"\n")
    at = dice.randrange(len(lines))
    lines[at] = dice.choice([b"", lines[at].replace(b"s", b"z"), lines[at] + b"\tx|y,z", b'"' + lines[at]])
    path.write_bytes(b"\n".join(lines))


def copy_text(folder: Path, dice: random.Random) -> None:
    path = dice.choice(texts_in(folder))
    copy = path.with_name(f"copy-{path.name}")
    raw = path.read_bytes()
    for old, new in zip(TEXTS.values(), OTHER.values(), strict=True):
        raw = raw.replace(old.encode(), new.encode())
    copy.write_bytes(raw)


def call_a_recording_as_a_word(folder: Path, dice: random.Random) -> None:
    """Give a recording the name that a text begins with."""
    media = [path for path in sorted(folder.rglob("*")) if is_media(path)]
    if media:
        path = dice.choice(media)
        path.rename(path.with_name(f"{dice.choice(SENTENCES).split()[0]}{path.suffix}"))


def without_dice(change: Callable[[Path], None]) -> Change:
    return lambda folder, _: change(folder)


CHANGES: tuple[Change, ...] = (
    *map(without_dice, (rename_column, lose_a_recording, name_in_ethiopic)),
    *map(without_dice, (recode("utf-8-sig"), recode("utf-8", "\r\n"), recode("utf-16"), recode("utf-16-le"))),
    rename_text,
    change_suffix,
    move_text,
    lose_another_file,
    cut_text,
    change_a_line,
    copy_text,
    call_a_recording_as_a_word,
)


def build(folder: Path, dice: random.Random) -> list[str]:
    """Build one or two layouts with sentences of their own, and change them; return what was done."""
    done = []
    first, second = dice.sample(LAYOUTS, 2)
    first.build(folder)
    done.append(first.name)
    if dice.random() < 0.5:
        place = folder if dice.random() < 0.3 else folder / "second"
        place.mkdir(exist_ok=True)
        with pytest.MonkeyPatch.context() as patch:
            for name, text in OTHER.items():
                patch.setitem(TEXTS, name, text)
            patch.setattr(layouts, "LONG", " ".join(OTHER.values()))
            second.build(place)
        done.append(f"{second.name} in {place.name}")
    for change in dice.choices(CHANGES, k=dice.randint(1, 3)):
        if texts_in(folder):
            with contextlib.suppress(UnicodeDecodeError):  # of a list in UTF-16
                change(folder, dice)
            done.append(change.__name__)
    return done


def unaccounted(folder: Path, scan: ScanResult) -> list[str]:
    """Return the files of which a sentence is not used, although nothing says so."""
    used = " ".join(map(text_of, scan.recordings))
    named = [(problem.path, str(problem.reason)) for problem in scan.problems]
    named += [(Path(note.name), str(note)) for note in scan.notes if isinstance(note, TextRepaired)]
    named += [(recording.path, str(warning)) for recording in scan.recordings for warning in recording.warnings]

    def is_named(path: Path, sentence: str) -> bool:
        return any(
            place == path
            or place in path.parents
            or sentence[:12] in reason
            or path.name in reason
            or place.name.split(".")[0] == path.name.split(".")[0]  # the two texts of LibriTTS
            for place, reason in named
        )

    return [
        f"{path.relative_to(folder)}: {sentence}"
        for path in texts_in(folder)
        for sentence in sentences_in(path)
        if sentence not in used and not is_named(path, sentence)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_text_that_is_not_used_is_named(tmp_path: Path, seed: int) -> None:
    for case in range(CASES):
        folder = tmp_path / f"{case}"
        folder.mkdir()
        done = build(folder, random.Random(1000 * seed + case))
        scan = find_recordings([folder], language="am", workspace=tmp_path / "workspace")
        assert unaccounted(folder, scan) == [], f"case {case}: {done}"
        held = hold_back(scan)
        assert scan.problems or all(recording.text or recording.cues for recording in held.recordings) or scan.notes
