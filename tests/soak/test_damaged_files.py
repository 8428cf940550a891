"""Every damaged file is read or refused; whatever else a reader does is found, counted and kept."""

from functools import partial
from pathlib import Path

import pytest

from tests.refusals import is_refused
from tests.soak import fuzzing
from tests.soak import unreliable_readers as readers
from tests.soak.fuzzing import fuzz
from tests.soak.mutations import mutant
from tests.soak.readers import FORMATS
from tests.soak.reading import Format
from tests.soak.specimens import make, make_light
from utils.core.errors import RunError

NEEDS_A_MODEL = ("model/", "runs/")
LIGHT = [form for form in FORMATS if not form.file.startswith(NEEDS_A_MODEL)]
INPUTS, EACH = 12, 15  # of each format, in this process and in another


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_light(tmp_path_factory.mktemp("specimens"))


@pytest.mark.parametrize("form", LIGHT, ids=lambda form: form.name)
def test_a_damaged_file_is_read_or_refused(form: Format, light: Path) -> None:
    path = light / form.file
    whole = {one: one.read_bytes() for one in path.parent.iterdir() if one.is_file()}
    outcomes = []
    for number in range(INPUTS):
        path.write_bytes(mutant(whole[path], f"5/{form.name}/{number}").content)
        try:
            outcomes.append(is_refused(partial(form.read, path)))
        finally:
            for one, content in whole.items():
                one.write_bytes(content)
    assert any(outcomes)
    assert form.read(path) is not None


@pytest.mark.slow
def test_hundreds_of_damaged_files_in_another_process(tmp_path: Path) -> None:
    found = fuzz(FORMATS, make(tmp_path / "specimens"), tmp_path / "failures", EACH * len(FORMATS), seed=5)
    assert found.failures == ()
    assert [(tally.name, tally.inputs) for tally in found.tallies] == [(form.name, EACH) for form in FORMATS]
    assert sum(tally.refused for tally in found.tallies) > found.inputs / 3
    assert sum(tally.without_hint for tally in found.tallies) == 0


@pytest.fixture
def specimens(tmp_path: Path) -> Path:
    folder = tmp_path / "specimens"
    folder.mkdir()
    (folder / readers.FILE).write_bytes(readers.CONTENT)
    return folder


@pytest.mark.slow
def test_what_is_refused_is_no_failure(specimens: Path, tmp_path: Path) -> None:
    found = fuzz([readers.FINE, readers.UNSAID], specimens, tmp_path / "failures", 40, seed=1)
    fine, unsaid = found.tallies
    assert found.failures == ()
    assert fine.inputs == unsaid.inputs == 20
    assert fine.refused > 15
    assert (fine.without_hint, unsaid.without_hint) == (0, unsaid.refused)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "said", "seconds"),
    [
        (readers.CARELESS, "IndexError", fuzzing.SECONDS),
        (readers.DYING, "died with exit code 3", fuzzing.SECONDS),
        (readers.ENDLESS, "it hung", 0.2),
        (readers.GREEDY, "MemoryError", fuzzing.SECONDS),
    ],
)
def test_every_other_end_is_a_failure_that_is_kept(
    form: Format, said: str, seconds: float, specimens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzzing, "SECONDS", seconds)
    told: list[int] = []
    found = fuzz([form], specimens, tmp_path / "failures", 6, seed=3, tell=told.append)
    assert told == [1, 2, 3, 4, 5, 6]
    assert found.failures
    failure = found.failures[0]
    assert all(said in one.said for one in found.failures)
    assert len(min((one.done for one in found.failures), key=len)) == 1
    assert Path(failure.file).read_bytes() != readers.CONTENT


def test_a_specimen_that_is_not_whole_ends_the_campaign(specimens: Path, tmp_path: Path) -> None:
    (specimens / readers.FILE).write_bytes(b"damaged")
    with pytest.raises(RunError, match="A whole fine is not read"):
        fuzz([readers.FINE], specimens, tmp_path / "failures", 1, seed=1)
