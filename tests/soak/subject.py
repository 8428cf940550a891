"""A project to inject faults into, and what must hold after each of them: nothing that was written is lost."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import psutil

from tests.random_base import random_base
from tests.soak.formats import write_dataset
from tests.waiting import wait_for
from utils.config import TrainConfig
from utils.core import folders
from utils.core.events import Event, iter_events, read_tail
from utils.core.processes import is_alive
from utils.dataset.clip import Clip
from utils.dataset.store import Store
from utils.studio import runs
from utils.studio.paths import Project
from utils.studio.run_state import State
from utils.studio.runs import Run
from utils.training import resume_state
from utils.xtts import checkpoints

PATIENCE = 600.0  # seconds that a start and a save may take on a busy machine


class Lost(Exception):  # noqa: N818  # a finding, not an error
    """Something that was written is gone, or a run does not resume."""


class Subject:
    """A project with one training at a time."""

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder)
        write_dataset(self.project.dataset)
        self.clips = self.read_clips()
        self.run: Run | None = None
        self.processes: list[psutil.Process] = []  # of the training, the parent first
        settings = {
            "custom_model": random_base(),
            "language": "am",
            "batch_size": 2,
            "grad_acumm": 1,
            "num_epochs": 1000,
        }
        saving = {"save_step": 2, "save_n_checkpoints": 3, "eval_step": 5, "sample_texts": "-"}
        self.config = TrainConfig.parse(
            {**settings, **saving, "enable_mixed_precision": False, "output_path": str(folder)}
        )

    @property
    def training(self) -> Run:
        """Return its run, which must exist."""
        if self.run is None:
            raise Lost("there is no run")
        return self.run

    def read_clips(self) -> dict[str, Clip]:
        return Store(self.project.dataset).read().clips

    def events(self, kind: str) -> list[Event]:
        return [event for event in iter_events(self.training.events) if event["kind"] == kind]

    def steps(self, kind: str) -> list[int]:
        return [int(str(event["step"])) for event in self.events(kind)]

    def saved(self) -> int:
        """Return the last update that was reported as saved."""
        return max(self.steps("saved"), default=0)

    def work(self, updates: int = 2) -> Run:
        """Start or resume the training, as the page does, and wait for more updates."""
        if self.run is None or self.run.current_state().status == "finished":
            self.run = runs.start("train", self.config, self.project).run
        elif self.run.current_state().status not in runs.ACTIVE:
            runs.resume(self.run)
        self.advance(updates)
        self.processes = _processes(self.run.read_state())
        return self.run

    def advance(self, updates: int = 2) -> None:
        """Wait for more updates, and for the first save."""
        wanted = len(self.events("train")) + updates
        self.wait_until(lambda: len(self.events("train")) >= wanted and self.saved() > 0, "no further update")

    def wait_until(self, condition: Callable[[], bool], otherwise: str) -> None:
        """Wait for something that has to happen while the training is active."""

        def describe() -> str:
            state, tail = self.training.current_state(), read_tail(self.training.log, 1500)
            return f"{otherwise}: the run is {state.status}. {state.message} {tail}"

        def happened_or_ended() -> bool:
            return condition() or self.training.current_state().status not in runs.ACTIVE

        wait_for(happened_or_ended, PATIENCE, describe)
        if not condition():
            raise Lost(describe())

    def wait_for_end(self) -> State:
        """Wait until the training and all its processes have ended; return its last state."""
        wait_for(lambda: self.training.current_state().status not in runs.ACTIVE, PATIENCE)
        self.expect_no_process()
        return self.training.current_state()

    def kill(self) -> None:
        """Kill the training, and check that no process of it is left."""
        self.processes = _processes(self.training.read_state()) or self.processes
        _kill(self.processes[:1])
        self.expect_no_process()

    def expect_no_process(self) -> None:
        """Wait until no process of the training is left; those that stay are killed."""
        _, left = psutil.wait_procs(self.processes, timeout=PATIENCE)
        _kill(left)
        if left:
            raise Lost(f"processes are left: {left}")

    def check(self) -> None:
        """Check that everything that was reported is intact: resume state, checkpoints, the best one, clips."""
        folder, saved = self.training.folder, self.saved()
        if saved and (update := int(resume_state.load(folder / checkpoints.RESUME_FOLDER).update)) < saved:
            raise Lost(f"update {saved} was reported as saved, and the state is of {update}")
        steps = set()
        for checkpoint in checkpoints.list_checkpoints(folder):
            if checkpoint.error:
                raise Lost(checkpoint.error)
            checkpoints.read_state(checkpoint.folder)
            steps.add(checkpoint.step)
        newest, best = max(self.steps("checkpoint"), default=None), checkpoints.best_step(folder)
        if newest not in {None, *steps}:
            raise Lost(f"checkpoint {newest} was reported and is gone")
        if best not in {None, *steps}:
            raise Lost(f"checkpoint {best} is marked as the best and is gone")
        self.check_clips()

    def check_clips(self) -> None:
        if self.read_clips() != self.clips:
            raise Lost("the clips are not what was written")

    def check_resume(self) -> None:
        """Resume the run, and check that it continues after the update of its resume state."""
        newest = folders.newest_complete(self.training.folder / checkpoints.RESUME_FOLDER, checkpoints.RESUME_STATE)
        last = int(folders.read_manifest(newest, checkpoints.RESUME_STATE)["update"]) if newest else 0
        before = len(self.events("train"))
        self.work()
        steps = self.steps("train")[before:]
        if steps != list(range(last + 1, last + 1 + len(steps))):
            raise Lost(f"after update {last} it took {steps}")

    def close(self) -> None:
        """Stop every run, whoever started it."""
        for run in runs.list_runs(self.project):
            runs.stop_now(run)


def _processes(state: State) -> list[psutil.Process]:
    """Return the process of a run and its children; none when it is gone, as its number may be another's."""
    try:
        parent = psutil.Process(state.pid)  # before the check, so that the checked process is the one to be killed
        return [parent, *parent.children(recursive=True)] if is_alive(state.pid, state.identity) else []
    except psutil.NoSuchProcess:
        return []


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended by itself meanwhile
            process.kill()
