"""A run whose settings were replaced after a failed test of the device resumes when a later test has another result."""

from pathlib import Path
from typing import Any

import pytest

from tests.training.certificates import write_certificate
from tests.training.running import events, figures, resume, settings, trained
from utils.config import TrainConfig
from utils.studio.runs import Run
from utils.training import gpu_test, resume_state
from utils.training.errors import TrainingError
from utils.training.facts import OptimizerStartsAnew, SettingReplaced
from utils.training.gpu_test import Switch
from utils.xtts import checkpoints

pytestmark = pytest.mark.slow

ADAFACTOR = Switch("Adafactor", {"optimizer": "adafactor"}, {"optimizer": "adamw"})  # 8-bit AdamW needs a GPU
CHOSEN: dict[str, Any] = {"enable_ema": True, "deterministic": True, "optimizer": "adafactor", "max_steps": 3}
FAILED = ("fused attention", "averaged weights", "resuming, deterministic", ADAFACTOR.name)


@pytest.fixture(autouse=True)
def path(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    known = (*gpu_test.switches(), ADAFACTOR)
    monkeypatch.setattr(gpu_test, "switches", lambda: known)
    return certificate


def continued(run: Run, **changes: object) -> None:
    resume(run, TrainConfig.load_own(run.config).model_copy(update={"max_steps": 5, **changes}))


def saved(run: Run) -> resume_state.Snapshot:
    return resume_state.load(run.folder / checkpoints.RESUME_FOLDER)


@pytest.mark.parametrize(("first", "second"), [(FAILED, ()), ((), FAILED)])
def test_it_resumes_after_a_test_with_another_result(
    first: tuple[str, ...], second: tuple[str, ...], path: Path, tmp_path: Path, dataset: Path
) -> None:
    write_certificate(path, FAILED, first)
    run = trained(tmp_path / "project", dataset, **CHOSEN)
    assert (saved(run).settings["enable_ema"], saved(run).ema is None) == (not first, bool(first))
    write_certificate(path, FAILED, second)
    continued(run)
    assert figures(run, "step") == [1, 2, 3, 4, 5]
    assert {event["switch"] for event in events(run, SettingReplaced.kind)} == set(FAILED)
    assert len(events(run, OptimizerStartsAnew.kind)) == 1
    assert (saved(run).settings["enable_ema"], saved(run).ema is None) == (not second, bool(second))


def test_its_newest_checkpoint_can_be_continued_too(path: Path, tmp_path: Path, dataset: Path) -> None:
    write_certificate(path, FAILED, FAILED)
    run = trained(tmp_path / "project", dataset, **CHOSEN)
    (run.folder / checkpoints.RESUME_FOLDER / checkpoints.RESUME_STATE).write_text("{")
    write_certificate(path, FAILED)
    continued(run)
    assert saved(run).update == 5


def test_a_setting_that_somebody_changed_is_still_refused(path: Path, tmp_path: Path, dataset: Path) -> None:
    write_certificate(path, FAILED, FAILED)
    run = trained(tmp_path / "project", dataset, **CHOSEN)
    with pytest.raises(TrainingError):
        continued(run, enable_ema=False)


def test_a_run_that_finds_its_batch_size_keeps_what_was_chosen(path: Path, tmp_path: Path, dataset: Path) -> None:
    write_certificate(path, FAILED, FAILED)
    run = trained(tmp_path / "project", dataset, **CHOSEN, find_batch_size=True)
    wanted = settings(tmp_path / "project", dataset, **CHOSEN)
    found = TrainConfig.load_own(run.config)
    assert (found.enable_ema, found.enable_sdpa, found.optimizer) == (True, True, wanted.optimizer)
    assert not found.find_batch_size
