"""Two pages and a command line that change one project at the same time: every change is kept.

``SOAK_EDITS=200`` lets each page make that many changes of each kind.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soak.formats import write_dataset
from utils.core.paths import ROOT
from utils.dataset import editor
from utils.dataset.store import load_dataset
from utils.studio import uploads
from utils.studio.paths import Project
from utils.xtts.pronunciations import read_pronunciations

EDITS = int(os.environ.get("SOAK_EDITS", "20"))
PAGE = """
import sys
from pathlib import Path
from utils.dataset import editor
from utils.studio import uploads
from utils.studio.paths import Project
from utils.xtts.pronunciations import add_pronunciation
project, clip, other = Project(Path(sys.argv[1])), sys.argv[2], sys.argv[3]
for number in range(int(sys.argv[4])):
    editor.set_text(project.dataset, clip, f"ሰላም {number}")
    editor.exclude(project.dataset, [other], f"noise {number}")
    uploads.add_input(project, f"https://example.org/{clip}/{number}.wav")
    add_pronunciation(project.pronunciations, f"{clip} {number}", "ሰላም")
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project after two pages, each with two clips of its own, and a command line have changed it together."""
    project = Project(tmp_path_factory.mktemp("writers") / "mine")
    write_dataset(project.dataset, seconds=0.05)
    page = [sys.executable, "-c", PAGE, str(project.root)]
    command = [sys.executable, "-m", "utils", "dataset", "edit", "r-7", "--text", "ሰላም ለዓለም", "--project", "mine"]
    writers = [
        subprocess.Popen([*page, "r-3", "r-4", str(EDITS)], cwd=ROOT),
        subprocess.Popen([*page, "r-5", "r-6", str(EDITS)], cwd=ROOT),
        subprocess.Popen([*command, "--output", str(project.root.parent)], cwd=ROOT, stdout=subprocess.DEVNULL),
    ]
    assert [writer.wait(1500) for writer in writers] == [0, 0, 0]
    return project


def test_every_clip_has_its_last_text(project: Project) -> None:
    clips = load_dataset(project.dataset).clips
    assert [clips[name].text for name in ("r-3", "r-5", "r-7")] == [f"ሰላም {EDITS - 1}"] * 2 + ["ሰላም ለዓለም"]


def test_every_clip_is_excluded_for_its_last_reason(project: Project) -> None:
    clips = load_dataset(project.dataset).clips
    assert [clips[name].note for name in ("r-4", "r-6")] == [f"noise {EDITS - 1}"] * 2


def test_no_recording_is_missing_from_the_sources(project: Project) -> None:
    assert sum(name.startswith("https") for name in uploads.read_inputs(project)) == 2 * EDITS


def test_no_pronunciation_is_missing(project: Project) -> None:
    assert len(read_pronunciations(project.pronunciations)) == 2 * EDITS


def test_every_edit_can_be_undone(project: Project, tmp_path: Path) -> None:
    write_dataset(tmp_path / "before", seconds=0.05)
    for _ in range(4 * EDITS + 1):
        editor.undo(project.dataset)
    assert load_dataset(project.dataset).clips == load_dataset(tmp_path / "before").clips
