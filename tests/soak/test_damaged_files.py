"""Every damaged file is read or refused, by the readers of the product and of the page."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.refusals import is_refused
from tests.soak.fuzzing import Format, fuzz
from tests.soak.readers import FORMATS
from tests.soak.specimens import write_all, write_events, write_without_model
from tests.workspace.test_takes import make_take
from utils.core.paths import Project
from utils.runs import Run
from utils.ui.tabs.training.render import comparison_table
from utils.ui.tabs.training.run_history import HistoryCache
from utils.workspace import takes

NEEDS_A_MODEL = ("model/", "runs/")
LIGHT = [form for form in FORMATS if not form.file.startswith(NEEDS_A_MODEL)]
INPUTS, EACH, OF_THE_PAGE = 12, 15, 100  # files of each format: in this process, in another, and of the page


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_without_model(tmp_path_factory.mktemp("specimens"))


@pytest.mark.parametrize("form", LIGHT, ids=lambda form: form.name)
def test_a_damaged_file_is_read_or_refused(form: Format, light: Path) -> None:
    path = light / form.file
    intact = {file: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}
    outcomes = []
    for number in range(INPUTS):
        path.write_bytes(form.damage(intact[path], 5, number))
        try:
            outcomes.append(is_refused(partial(form.read, path)))
        finally:
            for file, content in intact.items():
                file.write_bytes(content)
    assert any(outcomes)
    assert form.read(path) is not None


@pytest.mark.slow
def test_hundreds_of_damaged_files_in_another_process(tmp_path: Path) -> None:
    tallies = fuzz(FORMATS, write_all(tmp_path / "specimens"), tmp_path / "failures", EACH * len(FORMATS), seed=5)
    assert [failure for tally in tallies for failure in tally.failures] == []
    assert [(tally.name, tally.inputs) for tally in tallies] == [(form.name, EACH) for form in FORMATS]
    assert sum(tally.refused for tally in tallies) > EACH * len(FORMATS) / 3
    assert sum(tally.without_hint for tally in tallies) == 0


def read_history(path: Path) -> object:
    """Show a run, as the training tab does."""
    run = Run(path.parent)
    history = HistoryCache().read(run)
    return history, comparison_table([run, run], [history, history], "en")


def read_take(path: Path) -> object:
    """List the takes and open one, as the inference tab does."""
    project = Project(path.parents[2])
    return takes.newest(project), takes.load(project, path.parent.name).flags


def write_take(path: Path) -> None:
    project = Project(path.parents[2])
    take = make_take(project, "ሰላም።", notes=("a",))
    (takes.take_folder(project, take.name) / takes.METADATA).replace(path)


@pytest.mark.parametrize(
    ("file", "write", "read", "refuses"),
    [
        ("runs/1-train/events.jsonl", write_events, read_history, False),  # a damaged line is skipped
        (f"{takes.FOLDER}/1/{takes.METADATA}", write_take, read_take, True),
    ],
)
def test_the_page_reads_or_refuses(
    tmp_path: Path, file: str, write: Callable[[Path], object], read: Callable[[Path], object], *, refuses: bool
) -> None:
    form, path, outcomes = Format(file, file, read), tmp_path / file, []
    path.parent.mkdir(parents=True)
    write(path)
    intact = path.read_bytes()
    assert read(path)
    for number in range(OF_THE_PAGE):
        path.write_bytes(form.damage(intact, 9, number))
        outcomes.append(is_refused(partial(read, path)))
    assert any(outcomes) == refuses


def test_a_number_that_no_float_holds_is_left_out_of_the_curves(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"kind": "train", "step": 1, "epoch": 1, "loss": %s}\n' % ("7" * 400))
    history = HistoryCache().read(Run(tmp_path))
    assert history.step == 1
    assert history.points("loss") == []
