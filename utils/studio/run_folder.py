"""The folder of a run: what it holds, and how its state is read and written."""

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from utils.core.errors import RunError
from utils.core.facts import error_to_json
from utils.core.storage import document, read_document, read_text, storage_errors, write_document
from utils.studio.facts import RunLostError, RunUnreadableError, Status
from utils.studio.paths import Project
from utils.studio.run_state import STATE_FILE, State
from utils.xtts import checkpoints

MAX_STATE = 4096  # bytes: the single block that every file has
NAME = re.compile(r"[^-]+-[^-]+-(?P<verb>.+?)(-\d+)?")  # such as 20260101-120000-prepare-2
ACTIVE: frozenset[Status] = frozenset({"starting", "running"})


@dataclass(frozen=True)
class Run:
    """A run on disk: the folder with everything about it."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def verb(self) -> str:
        """The command that it runs, from its name: its state may be damaged."""
        match = NAME.fullmatch(self.name)
        return match["verb"] if match else ""

    @property
    def project(self) -> Project:
        return Project(self.folder.parent.parent)

    @property
    def config(self) -> Path:
        return self.folder / "config.yaml"

    @property
    def events(self) -> Path:
        return self.folder / "events.jsonl"

    @property
    def log(self) -> Path:
        return self.folder / "log.txt"

    @property
    def note_file(self) -> Path:
        """The file with what a person wrote about the run; its first line is the run's title in lists."""
        return self.folder / "note.txt"

    @property
    def note(self) -> str:
        return read_text(self.note_file).strip() if self.note_file.is_file() else ""

    @property
    def title(self) -> str:
        """The first line of the note, or the name."""
        return self.note.partition("\n")[0] or self.name

    @property
    def stop_file(self) -> Path:
        """The file that requests a stop."""
        return self.folder / "stop"

    @property
    def state_file(self) -> Path:
        return self.folder / "state.json"

    @property
    def is_begun(self) -> bool:
        """Whether there is a state, also one that cannot be read, or checkpoints, which may have been copied alone."""
        try:
            self.state_file.stat()  # unlike is_file, which from Python 3.14 on hides that it is not permitted
        except (FileNotFoundError, NotADirectoryError):
            return (self.folder / checkpoints.FOLDER).is_dir()
        except OSError:
            return True
        return True

    def read_state(self) -> State:
        try:
            return STATE_FILE.validate_python(read_document(self.state_file))
        except OSError as error:
            reason = error.strerror or str(error)
        except ValidationError as error:
            first = error.errors()[0]
            reason = " ".join([*map(str, first["loc"]), first["msg"]])
        except ValueError as error:
            reason = str(error)
        raise RunUnreadableError(self.state_file, reason)

    def write_state(self, state: State) -> None:
        write_document(self.state_file, STATE_FILE.dump_python(state, mode="json"))

    def overwrite_state(self, state: State) -> None:
        """Overwrite the state in place, which works on a full disk."""
        content = document(STATE_FILE.dump_python(state, mode="json")).encode()
        if len(content) > MAX_STATE and state.error:
            self.overwrite_state(dataclasses.replace(state, error={}, message=""))
            return
        with storage_errors(self.state_file), self.state_file.open("r+b") as file:
            file.write(content)
            file.truncate()

    def current_state(self) -> State:
        """Read the state; a run whose process is gone is LOST."""
        try:
            state = self.read_state()
        except RunError as error:
            return State(verb="", status="unreadable", created=0.0, error=error_to_json(error))
        if state.status in ACTIVE and not state.is_alive:
            return dataclasses.replace(state, status="lost", error=error_to_json(RunLostError(self.log)))
        return state
