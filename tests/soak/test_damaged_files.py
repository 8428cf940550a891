"""Every damaged file is read or refused; whatever else a reader does is found, counted and kept."""

from functools import partial
from pathlib import Path

import pytest

from tests.refusals import is_refused
from tests.soak.fuzzing import fuzz
from tests.soak.mutations import mutant
from tests.soak.readers import FORMATS
from tests.soak.reading import Format
from tests.soak.specimens import make, make_light

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
