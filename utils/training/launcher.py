"""Start several training processes on this machine and supervise them."""

import contextlib
import os
import subprocess
from collections.abc import Sequence

from utils.core.facts import ShouldStop, Stop, raise_if_stopped
from utils.core.processes import end_tree, identity, spawn
from utils.core.threads import THREADS, threads_each
from utils.training.errors import TrainingError

POLL_SECONDS = 0.5


def is_member() -> bool:
    """Tell whether torchrun or accelerate launch started this process."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def launch(arguments: Sequence[str], count: int, should_stop: ShouldStop, device: str) -> int:
    """Run a module with its arguments in several processes; return the exit code of the group."""
    import torch

    from utils.xtts.device import choose_device

    kind = choose_device(device)
    available = torch.get_device_module(kind).device_count()
    if kind != "cpu" and count > available:
        raise TrainingError("too_many_processes", available)
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}", "-m"]
    group = spawn([*torchrun, *arguments], env={THREADS: str(threads_each(count))})
    who = identity(group.pid)
    try:
        while group.poll() is None:
            if should_stop() is Stop.NOW:
                end_tree(group.pid, who)
            with contextlib.suppress(subprocess.TimeoutExpired):
                group.wait(POLL_SECONDS)
    finally:
        end_tree(group.pid, who)
    raise_if_stopped(should_stop)  # the members have saved
    return int(group.returncode)
