"""The curves of a run in TensorBoard, Weights & Biases or trackio, besides events.jsonl; off unless asked for."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.config import TrainConfig
from utils.runs import Run

if TYPE_CHECKING:
    from accelerate import Accelerator

FOLDER = "tracker"  # of a run
PACKAGES = {"tensorboard": "tensorboard", "wandb": "wandb", "trackio": "trackio"}


def is_missing(config: TrainConfig) -> bool:
    """Tell whether a tracker was chosen whose package is not installed."""
    return config.tracker != "none" and importlib.util.find_spec(PACKAGES[config.tracker]) is None


class Tracker:
    """Sends figures to the tracker; whatever goes wrong there is told once and never ends a run.

    Args:
        config: The settings of the run.
        accelerator: Was made with the tracker.
        run: Gives its name to the curves.
        warn: Hears what went wrong.
    """

    def __init__(self, config: TrainConfig, accelerator: "Accelerator", run: Run, warn: Callable[[str], None]) -> None:
        self.accelerator, self.warn = accelerator, warn
        self.is_on = config.tracker != "none"
        if is_missing(config):
            self._give_up(f"tracker: the package {PACKAGES[config.tracker]} is not installed.")
        elif self.is_on:
            self._try(lambda: self._begin(config, run))

    def log(self, figures: dict[str, Any], step: int) -> None:
        """Send the figures of an update or an evaluation."""
        if self.is_on:
            numbers = {name: value for name, value in figures.items() if isinstance(value, int | float)}
            self._try(lambda: self.accelerator.log(numbers, step=step))

    def close(self) -> None:
        """Let the tracker write what it still holds."""
        if self.is_on:
            self._try(self.accelerator.end_training)

    def _begin(self, config: TrainConfig, run: Run) -> None:
        names = {"wandb": {"name": run.name, "id": run.name, "resume": "allow"}, "trackio": {"name": run.name}}
        settings = config.model_dump(mode="json")
        self.accelerator.init_trackers(run.project.root.name, config=settings, init_kwargs=names)

    def _try(self, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001  # anything may come from there, and no run is worth losing for it
            self._give_up(f"tracker: {type(error).__name__}: {error}.")

    def _give_up(self, reason: str) -> None:
        self.is_on = False
        self.warn(f"{reason} The run goes on without it; its curves are in events.jsonl.")


def logging_folder(run: Run) -> Path:
    """Return where a tracker that writes files puts them."""
    return run.folder / FOLDER
