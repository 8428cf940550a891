"""One owner decides how many threads compute: within what a user, an affinity and a container allow."""

import os
import subprocess
from pathlib import Path

import pytest

from utils.core import threads
from utils.core.processes import spawn
from utils.core.threads import PASSIVE, THREADS, available_cores, prepare_libraries, threads_each
from utils.core.workers import ReportShare, run_in_processes


@pytest.fixture(autouse=True)
def quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a quota, which is not there yet, on a machine with six cores, where the user has set nothing."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    monkeypatch.setattr(threads, "QUOTA", tmp_path / "cpu.max")
    for name in (THREADS, *PASSIVE):
        monkeypatch.setenv(name, "")  # so that it is restored, whatever prepare_libraries() sets
        monkeypatch.delenv(name)
    return tmp_path / "cpu.max"


def threads_of_torch(_task: int, _report: ReportShare) -> int:
    import torch

    return torch.get_num_threads()


def in_child(*names: str) -> list[str]:
    code = f"import os; print(*(os.environ.get(name) for name in {names}))"
    output, _ = spawn(["-c", code], stdout=subprocess.PIPE).communicate(timeout=60)
    return output.decode().split()


def test_children_wait_passively_unless_the_user_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KMP_BLOCKTIME", "200")
    prepare_libraries()
    assert in_child(*PASSIVE) == ["200", "0", "PASSIVE"]


@pytest.mark.parametrize(("allowed", "cores"), [("max", 6), ("250000", 3), ("50000", 1), ("1600000", 6)])
def test_a_container_has_the_cores_of_its_quota(allowed: str, cores: int, quota: Path) -> None:
    quota.write_text(f"{allowed} 100000\n")
    assert available_cores() == cores


def test_a_process_has_no_more_threads_than_its_container_has_cores(quota: Path) -> None:
    quota.write_text("200000 100000\n")
    prepare_libraries()
    assert in_child(THREADS) == ["2"]


def test_the_number_of_a_user_stays_in_a_container(quota: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quota.write_text("200000 100000\n")
    monkeypatch.setenv(THREADS, "4")
    prepare_libraries()
    assert in_child(THREADS) == ["4"]


def test_without_a_quota_torch_counts_the_cores_itself() -> None:
    prepare_libraries()
    assert in_child(THREADS) == ["None"]


@pytest.mark.parametrize(
    ("processes", "limit", "each"), [(1, "", 6), (2, "", 3), (4, "", 1), (12, "", 1), (2, "1", 1), (2, "9", 3)]
)
def test_processes_that_compute_at_once_share_the_cores(
    processes: int, limit: str, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(THREADS, limit)
    assert threads_each(processes) == each


def test_workers_share_the_cores() -> None:
    outcomes = run_in_processes(threads_of_torch, range(2), 6, lambda _task, _share: None)
    assert {outcome.result for outcome in outcomes} == {1}
