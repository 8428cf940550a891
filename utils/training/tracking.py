"""Metrics in TensorBoard, Weights & Biases or trackio, in addition to events.jsonl. Off by default."""

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
    """Tell whether the chosen tracker's package is missing."""
    return config.tracker != "none" and importlib.util.find_spec(PACKAGES[config.tracker]) is None


class Tracker:
    """Sends metrics to the tracker. Its errors are reported once and never end a run.

    Args:
        config: Settings of the run.
        accelerator: Created with the tracker.
        run: The run that is tracked.
        warn: Called with the error message.
    """

    def __init__(self, config: TrainConfig, accelerator: "Accelerator", run: Run, warn: Callable[[str], None]) -> None:
        self.accelerator, self.warn = accelerator, warn
        self.enabled = config.tracker != "none"
        if is_missing(config):
            self._disable(f"tracker: the package {PACKAGES[config.tracker]} is not installed.")
        elif self.enabled:
            self._try(lambda: self._start(config, run))

    def log(self, metrics: dict[str, Any], step: int) -> None:
        """Send the metrics of an update or an evaluation."""
        if self.enabled:
            numbers = {name: value for name, value in metrics.items() if isinstance(value, int | float)}
            self._try(lambda: self.accelerator.log(numbers, step=step))

    def close(self) -> None:
        """Flush and close the tracker."""
        if self.enabled:
            self._try(self.accelerator.end_training)

    def _start(self, config: TrainConfig, run: Run) -> None:
        names = {"wandb": {"name": run.name, "id": run.name, "resume": "allow"}, "trackio": {"name": run.name}}
        settings = config.model_dump(mode="json")
        self.accelerator.init_trackers(run.project.root.name, config=settings, init_kwargs=names)

    def _try(self, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001  # trackers raise anything, and none of it should end a run
            self._disable(f"tracker: {type(error).__name__}: {error}.")

    def _disable(self, reason: str) -> None:
        self.enabled = False
        self.warn(f"{reason} The run continues without it; all metrics are in events.jsonl.")


def logging_folder(run: Run) -> Path:
    """Return the folder for a tracker's files."""
    return run.folder / FOLDER
