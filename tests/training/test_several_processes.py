"""Two processes that train together come to what one process does with the same effective batch."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.random_base import random_base
from tests.training import running
from tests.training.running import figures, trained
from tests.training.trainable import write_dataset
from utils.config import TrainConfig
from utils.config.flags import flag
from utils.core.paths import ROOT
from utils.studio.paths import Project
from utils.studio.runs import Run, list_runs
from utils.xtts import checkpoints

pytestmark = pytest.mark.slow
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m")
QUICK = running.QUICK | {"max_steps": 4, "save_step": 2, "dropout": 0}


def command(project: Path, dataset: Path, *words: str, launcher: tuple[str, ...] = ("-m",)) -> list[str]:
    lists = {f"{split}_csv": dataset / f"metadata_{split}.csv" for split in ("train", "eval")}
    values = QUICK | lists | {"custom_model": random_base(), "output_path": project}
    flags = [f"{flag(name)}={value}" for name, value in values.items() if not isinstance(value, bool)]
    return [sys.executable, *launcher, "utils", "train", *flags, "--no-enable-mixed-precision", *words]


def train_by_command(project: Path, dataset: Path, *words: str, launcher: tuple[str, ...] = ("-m",)) -> Run:
    start = command(project, dataset, *words, launcher=launcher)
    done = subprocess.run(start, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    (run,) = list_runs(Project(project))
    assert run.read_state().status == "finished", done.stdout[-1500:] + done.stderr[-1500:]
    return run


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, dataset: Path) -> Run:
    return trained(tmp_path_factory.mktemp("alone"), dataset, **QUICK)


@pytest.mark.long
def test_two_processes_of_torchrun_come_to_the_same_curve(tmp_path: Path, dataset: Path, alone: Run) -> None:
    together = train_by_command(tmp_path, dataset, "--grad-acumm=1", "--tracker=tensorboard", launcher=TORCHRUN)
    for kind in ("train", "evaluation"):
        assert figures(together, "loss", kind) == pytest.approx(figures(alone, "loss", kind), rel=1e-4)
    assert figures(together, "step") == [1, 2, 3, 4]
    assert not checkpoints.find(together.folder, "best").error


def accelerate(rank: int, port: int) -> tuple[str, ...]:
    """Return the launcher of one of two machines, as in docs/TRAINING.md."""
    place = (f"--machine_rank={rank}", "--main_process_ip=127.0.0.1", f"--main_process_port={port}")
    return ("-m", "accelerate.commands.launch", "--multi_gpu", "--num_machines=2", "--num_processes=2", *place, "-m")


@pytest.mark.long
def test_two_machines_come_to_the_same_curve(tmp_path: Path, dataset: Path, alone: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    starts = [command(tmp_path, dataset, "--grad-acumm=1", launcher=accelerate(rank, port)) for rank in (0, 1)]
    machines = [subprocess.Popen(start, cwd=ROOT) for start in starts]
    try:
        codes = [machine.wait(timeout=280) for machine in machines]
    finally:
        for machine in machines:
            machine.kill()
    assert codes == [0, 0]
    (run,) = list_runs(Project(tmp_path))
    assert run.read_state().status == "finished"
    for kind in ("train", "evaluation"):
        assert figures(run, "loss", kind) == pytest.approx(figures(alone, "loss", kind), rel=1e-4)


def test_two_processes_that_mix_languages_resume_where_they_were(tmp_path: Path, dataset: Path) -> None:
    """Every clip of the speaker is heard as another one, and a third of the clips is of another dataset."""
    other = write_dataset(tmp_path / "other", train=5, held_back=2, seed=9)
    changes = {"reference": "other_clip", "replay_data": str(other), "replay_share": 0.3, "lr_scheduler": "constant"}
    whole = trained(tmp_path / "whole", dataset, **QUICK, **changes)
    flags = [f"{flag(name)}={value}" for name, value in changes.items()]
    run = train_by_command(tmp_path / "two", dataset, "--num-processes=2", "--grad-acumm=1", *flags, "--max-steps=2")
    longer = TrainConfig.load(run.config).model_copy(update={"max_steps": 4})
    run.config.write_text(longer.to_yaml())
    words = ["runs", "resume", run.name, "--project=two", f"--output={tmp_path}"]
    done = subprocess.run([sys.executable, "-m", "utils", *words], cwd=ROOT, timeout=280, check=False)
    assert done.returncode == 0, run.log.read_text()[-2000:]
    for name, kind in (("loss", "train"), ("loss", "evaluation"), ("loss_other_languages", "evaluation")):
        expected = figures(whole, name, kind)
        assert figures(run, name, kind)[-1] == pytest.approx(expected[-1], rel=1e-4)
    assert figures(run, "step") == [1, 2, 3, 4]


FIRST_FAILS = """
import os, sys
from pathlib import Path
from utils.training.distribution import from_first
for divisor in (0, 1):
    try:
        said = from_first(lambda: str(1 // divisor))
    except Exception as error:
        said = type(error).__name__
    with (Path(sys.argv[1]) / os.environ["RANK"]).open("a") as file:
        file.write(said + " ")
"""


def test_an_error_of_the_first_process_stops_the_others_that_wait_for_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(FIRST_FAILS)
    start = [sys.executable, *TORCHRUN[:-1], str(script), str(tmp_path)]
    subprocess.run(start, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120, check=True)
    assert [(tmp_path / rank).read_text() for rank in "01"] == ["ZeroDivisionError 1 ", "StopRequested 1 "]


@pytest.mark.long
def test_the_error_of_one_process_is_the_cause_of_the_run(tmp_path: Path, dataset: Path) -> None:
    with pytest.raises(AssertionError):
        train_by_command(tmp_path, dataset, "--num-processes=2", "--max-audio-length=1")
    (run,) = list_runs(Project(tmp_path))
    assert "max_audio_length" in run.read_state().reason()
