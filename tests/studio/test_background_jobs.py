"""Background jobs: one of a kind at a time, progress, results, errors and stopping."""

import threading
import time

import pytest

from utils.core.errors import RunBusyError, RunError
from utils.core.events import Progress
from utils.studio.background_jobs import BackgroundJob, BackgroundJobs


def endless(job: BackgroundJob) -> None:
    while True:
        time.sleep(0.005)
        job.report(1, 2, "working")


def test_one_job_of_a_kind_runs_at_a_time() -> None:
    jobs, gate = BackgroundJobs(), threading.Event()
    job = jobs.start("p", "pack", lambda _: gate.wait(10) and "done")
    with pytest.raises(RunBusyError):
        jobs.start("p", "pack", lambda _: None)
    jobs.start("p", "compare", lambda _: None)
    gate.set()
    job.wait(10)
    assert (job.result, job.error, job.is_running) == ("done", None, False)
    assert jobs.start("p", "pack", lambda _: None) is jobs.get("p", "pack")


def test_a_job_reports_and_is_stopped() -> None:
    jobs = BackgroundJobs()
    job = jobs.start("p", "compare", endless)
    deadline = time.monotonic() + 10
    while not job.progress.step and time.monotonic() < deadline:
        time.sleep(0.005)
    assert job.progress == Progress(1, 2, message="working")
    assert jobs.stop("p", "compare")
    assert not job.is_running
    assert not jobs.stop("p", "compare")
    assert job.error is None


def test_a_failed_job_keeps_its_error() -> None:
    def fails(_job: BackgroundJob) -> None:
        raise RunError("No.")

    job = BackgroundJob(fails)
    job.wait(10)
    assert isinstance(job.error, RunError)
