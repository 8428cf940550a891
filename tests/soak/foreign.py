"""Files of other programs: each layout that the readers know, and books."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.dataset.layouts import LAYOUTS
from tests.dataset.test_documents import ONE, WORD, epub, packed
from tests.soak.formats import Format
from utils.dataset.readers.folder import is_media
from utils.dataset.sources import find_recordings
from utils.media import audio

PREFIX = "foreign-"


def read_input(path: Path) -> None:
    """Find the recordings as a preparation does, with what is wrong as facts, and open them."""
    with tempfile.TemporaryDirectory() as workspace:
        scan = find_recordings([path.parents[0]], language="am", workspace=Path(workspace))
        for fact in (*scan.problems, *scan.notes):
            str(fact)
        for recording in scan.recordings[:3]:
            audio.probe(recording.path)


def write_foreign(folder: Path) -> None:
    for name in ("epub", "docx", *(layout.name for layout in LAYOUTS)):
        (folder / f"{PREFIX}{name}").mkdir()
    for layout in LAYOUTS:
        layout.build(folder / f"{PREFIX}{layout.name}")
    epub(folder / f"{PREFIX}epub" / "book.epub", one=ONE, **{"two b": ONE})
    packed(folder / f"{PREFIX}docx" / "book.docx", {"word/document.xml": WORD})


def foreign_formats(specimens: Path) -> Iterator[Format]:
    """Yield the first file of each layout that is no sound."""
    for folder in sorted(specimens.glob(f"{PREFIX}*")):
        files = sorted((path for path in folder.rglob("*") if path.is_file()), key=is_media)
        yield Format(folder.name, files[0].relative_to(specimens).as_posix(), read_input)
