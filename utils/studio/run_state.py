"""The state of a run, as it stands in its folder."""

import dataclasses
import time
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from utils.core import wording
from utils.core.facts import Stop, error_from_json
from utils.core.processes import is_alive, machine
from utils.studio.facts import Status

START_SECONDS = 60.0  # a cold Python on a busy disk has taken 20
SILENT_SECONDS = 60.0  # a heartbeat is written every 5

Moment = Annotated[float, Field(ge=0, le=4e9)]  # seconds since 1970


@dataclass(frozen=True)
class State:
    """The content of state.json, validated when it is read."""

    verb: Annotated[str, Field(pattern=r"^[a-z][a-z-]*$")]
    status: Status
    created: Moment
    pid: int = 0
    identity: str = ""
    machine: str = ""
    heartbeat: Moment = 0.0
    message: str = ""  # of version 1.1, in place of the next two
    stop: Stop = Stop.NO  # how it was stopped
    error: dict[str, Any] = dataclasses.field(default_factory=dict)  # with which it failed
    lines: int = 0  # that events.jsonl had at least

    def reason(self) -> str:
        """Return why the run has ended."""
        if self.error:
            return wording.explain(error_from_json(self.error))
        return self.message or (wording.describe(self.stop) if self.stop else "")

    @property
    def is_alive(self) -> bool:
        """Tell whether the process is alive; on another machine, by its heartbeat."""
        silence = abs(time.time() - self.heartbeat)  # abs: the clock may have been set back
        if not self.pid:
            return silence < START_SECONDS
        if self.machine != machine():
            return silence < SILENT_SECONDS
        return is_alive(self.pid, self.identity)


STATE_FILE = TypeAdapter(State)
