"""Start several training processes on this machine and supervise them."""

import contextlib
import os
import subprocess

from utils.core.errors import ConfigError, RunError
from utils.core.events import read_events
from utils.core.facts import error_from_json
from utils.core.processes import end_tree, identity, spawn
from utils.studio.job import Job

POLL_SECONDS = 0.5


def is_member() -> bool:
    """Tell whether torchrun or accelerate launch started this process."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def launch(job: Job, count: int) -> None:
    import torch

    available = torch.cuda.device_count()
    if available and count > available:
        raise ConfigError(
            f"num_processes: {count} processes for {available} GPUs.", hint=f"Choose {available} or fewer."
        )
    offset = job.run.events.stat().st_size
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}", "-m"]
    threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, (os.cpu_count() or 1) // count))
    group = spawn([*torchrun, "utils", "work", str(job.run.folder), "--member"], env={"OMP_NUM_THREADS": threads})
    who = identity(group.pid)
    try:
        while group.poll() is None:
            if job.stop_request() == "now":
                end_tree(group.pid, who)
            with contextlib.suppress(subprocess.TimeoutExpired):
                group.wait(POLL_SECONDS)
    finally:
        end_tree(group.pid, who)
    job.stop_if_requested()  # the members have saved
    if group.returncode:
        failures = [event for event in read_events(job.run.events, offset).events if event["kind"] == "failed"]
        cause = str(error_from_json(failures[0]["error"])) if failures else ""  # type: ignore[arg-type]
        raise RunError(cause or f"A training process ended with code {group.returncode}; see log.txt.")
