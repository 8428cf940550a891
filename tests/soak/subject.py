"""A project that faults are done to, and what has to hold after each of them: nothing that was written is lost."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from tests.soak.clips import write_dataset
from utils import runs
from utils.config import TrainConfig
from utils.core.events import Event, iter_events, read_tail
from utils.core.paths import Project
from utils.dataset.clip import Clip
from utils.dataset.store import Store
from utils.runs import Run, State, Status
from utils.runs.processes import is_alive
from utils.training import resume_state
from utils.xtts import checkpoints
from utils.xtts.checkpoints import Checkpoint
from utils.xtts.files import TINY_RANDOM

PATIENCE = 180.0  # seconds that a start and a save may take on a busy machine
POLL = 0.05
SETTINGS: dict[str, object] = {
    "version": TINY_RANDOM,
    "language": "am",
    "batch_size": 2,
    "grad_acumm": 1,
    "num_epochs": 1000,
    "save_step": 2,
    "save_n_checkpoints": 3,
    "eval_step": 5,
    "sample_texts": "-",
    "enable_mixed_precision": False,
}


class Lost(Exception):  # noqa: N818  # a finding, not an error
    """Something that was written is gone, or a run does not go on."""


class Subject:
    """A project with one training at a time.

    Args:
        folder: Where the project lies.
    """

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder)
        write_dataset(self.project.dataset)
        self.clips = self.read_clips()
        self.run: Run | None = None
        self.family: list[psutil.Process] = []  # that trains, its children behind it

    @property
    def config(self) -> TrainConfig:
        """Return the settings of its training."""
        return TrainConfig.parse({**SETTINGS, "output_path": str(self.project.root)})

    @property
    def training(self) -> Run:
        """Return its run, which has to be there."""
        if self.run is None:
            raise Lost("there is no run")
        return self.run

    def read_clips(self) -> dict[str, Clip]:
        """Read the clips."""
        return Store(self.project.dataset).read().clips

    def work(self, updates: int = 2) -> Run:
        """Start the training or go on with it, as the page does, and wait until it has come further."""
        if self.run is None or self.run.current_state().status is Status.FINISHED:
            self.run = runs.start("train", self.config, self.project)
        elif self.run.current_state().status not in runs.ACTIVE:
            runs.resume(self.run)
        self.go_on(updates)
        self.family = _family(self.run.read_state())
        return self.run

    def find_run(self) -> None:
        """Wait for a training that somebody else starts."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = runs.active_run(self.project)
            if (
                found and found.current_state().status is Status.RUNNING
            ):  # one that is starting has no process to be killed yet
                self.run = found
                return
            time.sleep(POLL)
        raise Lost("no training was started")

    def go_on(self, updates: int = 2) -> None:
        """Wait until the training has taken more updates; its very first save is waited for too."""
        before = len(self.told("train"))
        self.until(lambda: len(self.told("train")) >= before + updates and self.saved() > 0, "no further update")

    def until(self, is_so: Callable[[], bool], otherwise: str) -> None:
        """Wait for something that has to come while the training is at work."""
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            state = self.training.current_state()
            if state.status not in runs.ACTIVE or time.monotonic() > deadline:
                tail = read_tail(self.training.log, 1500)
                raise Lost(f"{otherwise}: the run is {state.status}. {state.message} {tail}")
            time.sleep(POLL)

    def ended(self) -> State:
        """Wait until the training is over, with all its processes; return how it ended."""
        deadline = time.monotonic() + PATIENCE
        while (state := self.training.current_state()).status in runs.ACTIVE:
            if time.monotonic() > deadline:
                raise Lost(f"the run does not end: {state}")
            time.sleep(POLL)
        self.expect_gone()
        return state

    def kill(self) -> None:
        """Kill the training where it stands, and see that no process of it is left."""
        self.family = _family(self.training.read_state()) or self.family
        _kill(self.family[:1])
        self.expect_gone()

    def expect_gone(self) -> None:
        """Wait until no process of the training is left; those that stay are killed."""
        _, left = psutil.wait_procs(self.family, timeout=PATIENCE)
        _kill(left)
        if left:
            raise Lost(f"processes are left: {left}")

    def told(self, kind: str) -> list[Event]:
        """Return what the run has said of one kind."""
        return [event for event in iter_events(self.training.events) if event["kind"] == kind]

    def saved(self) -> int:
        """Return the last update that was announced as saved."""
        return max((int(str(event["step"])) for event in self.told("saved")), default=0)

    def check(self) -> None:
        """See that everything that was announced is whole: state, checkpoints, best one, clips and approvals."""
        run = self.training
        saved = self.saved()
        if saved and (found := int(resume_state.load(run.folder / checkpoints.RESUME_FOLDER).update)) < saved:
            raise Lost(f"update {saved} was announced as saved, and the state is of {found}")
        listed = checkpoints.list_checkpoints(run.folder)
        self.check_checkpoints(listed)
        best = checkpoints.best_step(run.folder)
        if best is not None and best not in {one.step for one in listed}:
            raise Lost(f"checkpoint {best} is marked as the best and is gone")
        self.check_clips()

    def check_checkpoints(self, listed: list[Checkpoint]) -> None:
        """Read every checkpoint, and see that the newest one that was announced is there."""
        for one in listed:
            if one.error:
                raise Lost(one.error)
            checkpoints.read_state(one.folder)
        newest = max((int(str(event["step"])) for event in self.told("checkpoint")), default=0)
        if newest and newest not in {one.step for one in listed}:
            raise Lost(f"checkpoint {newest} was announced and is gone")

    def check_clips(self) -> None:
        """See that clips and approvals are as they were written."""
        if self.read_clips() != self.clips:
            raise Lost("the clips are not what was written to it")

    def check_goes_on(self, from_update: int | None = None) -> None:
        """Go on with the run, and see that no update is missing or taken twice.

        Args:
            from_update: The last one that is not taken again; None: that of its state.
        """
        if from_update is None:
            from_update = int(resume_state.read_summary(self.training.folder / checkpoints.RESUME_FOLDER)["update"])
        before = len(self.told("train"))
        self.work()
        steps = [int(str(event["step"])) for event in self.told("train")[before:]]
        if steps != list(range(from_update + 1, from_update + 1 + len(steps))):
            raise Lost(f"after update {from_update} it took {steps}")

    def close(self) -> None:
        """End what is at work, whoever started it."""
        for run in runs.list_runs(self.project):
            runs.stop_now(run)


def _family(state: State) -> list[psutil.Process]:
    """Return the process that a run names and its children; none when it is gone, for its number may be another's."""
    try:
        parent = psutil.Process(state.pid)  # before the question, so that what is asked about is what will be killed
        return [parent, *parent.children(recursive=True)] if is_alive(state.pid, state.identity) else []
    except psutil.NoSuchProcess:
        return []


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended by itself meanwhile
            process.kill()
