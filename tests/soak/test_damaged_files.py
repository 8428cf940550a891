"""Every damaged file is read or refused, by the readers of the product and of the page."""

from pathlib import Path

import pytest

from tests.soak.formats import FORMATS, Format, write_events, write_specimens, write_without_model
from tests.soak.fuzzing import damage, fuzz
from tests.workspace.test_takes import make_take
from utils.core.paths import Project
from utils.runs import Run
from utils.ui.tabs.training.render import comparison_table
from utils.ui.tabs.training.run_history import HistoryCache
from utils.workspace import takes

LIGHT = [form for form in FORMATS if not form.file.startswith(("model/", "runs/"))]
TAKE = f"{takes.FOLDER}/1/{takes.METADATA}"
EACH = 15  # files of each format in another process


def read_history(path: Path) -> None:
    """Show a run, as the training tab does."""
    run = Run(path.parent)
    history = HistoryCache().read(run)
    comparison_table([run, run], [history, history], "en")


def read_take(path: Path) -> object:
    """List the takes and open one, as the inference tab does."""
    project = Project(path.parents[2])
    return takes.newest(project), takes.load(project, path.parent.name).flags


@pytest.fixture(scope="module")
def specimens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("specimens")
    write_without_model(folder)
    (folder / "runs" / "1-train").mkdir(parents=True)
    write_events(folder / "runs" / "1-train" / "events.jsonl")
    take = make_take(Project(folder), "ሰላም።", notes=("a",))
    takes.take_folder(Project(folder), take.name).rename((folder / TAKE).parent)
    return folder


@pytest.mark.parametrize(
    ("form", "inputs"),
    [
        *[pytest.param(form, 12, id=form.name) for form in LIGHT],
        pytest.param(Format("history", "runs/1-train/events.jsonl", read_history), 100, id="history"),
        pytest.param(Format("take", TAKE, read_take), 100, id="take"),
    ],
)
def test_a_damaged_file_is_read_or_refused(form: Format, inputs: int, specimens: Path, tmp_path: Path) -> None:
    intact = (specimens / form.file).read_bytes()
    contents = [intact, *(damage(intact, f"5/{form.name}/{number}") for number in range(inputs))]
    first, *outcomes = [form.outcome(specimens, content, tmp_path) for content in contents]
    assert first.kind == "read"
    assert [outcome.reason for outcome in outcomes if outcome.kind == "failed"] == []
    assert any(outcome.kind == "refused" for outcome in outcomes) == (form.name != "history")  # it skips damaged lines


@pytest.mark.slow
def test_hundreds_of_damaged_files_in_another_process(tmp_path: Path) -> None:
    write_specimens(tmp_path / "specimens")
    tallies = fuzz(tmp_path / "specimens", tmp_path / "failures", EACH * len(FORMATS), seed=5)
    assert [failure for tally in tallies for failure in tally.losses] == []
    assert [(tally.name, tally.inputs) for tally in tallies] == [(form.name, EACH) for form in FORMATS]
    assert sum(tally.refused for tally in tallies) > EACH * len(FORMATS) / 3
    assert sum(tally.without_hint for tally in tallies) == 0


def test_a_number_that_no_float_holds_is_left_out_of_the_curves(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"kind": "train", "step": 1, "epoch": 1, "loss": %s}\n' % ("7" * 400))
    history = HistoryCache().read(Run(tmp_path))
    assert history.step == 1
    assert history.points("loss") == []
