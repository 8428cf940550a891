"""Let assistants speak and prepare data through the Model Context Protocol, over standard input and output.

Files are only read from and written to one folder. It needs the package mcp.
"""

import argparse
import contextlib
import functools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from utils.cli.runs import add_output
from utils.config import SEPARATOR, DatasetConfig, SpeakerConfig, SpeechConfig
from utils.config.flags import add_flags, read_flags
from utils.core.errors import AmharicTtsError
from utils.core.paths import resolve_inside
from utils.core.storage import make_folder
from utils.core.wording import describe
from utils.dataset import sources
from utils.studio import runs
from utils.studio.facts import InputError, UsageError
from utils.studio.loading import chosen_voice
from utils.studio.paths import project

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from utils.speech.session import Check, SpeechSession
    from utils.speech.synthesizer import Synthesizer

CONFIG = SpeakerConfig
INSTRUCTIONS = "Speaks Amharic and other languages, and turns recordings into training clips."
P = ParamSpec("P")
R = TypeVar("R")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output(parser)
    parser.add_argument("--folder", type=Path, default=Path(), help="folder for all files (default: the current one)")
    add_flags(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    try:
        import mcp  # noqa: F401  # only to see whether it is there
    except ImportError as error:
        raise UsageError("no_package", "mcp") from error
    from utils.speech.session import SpeechSession

    config = SpeechConfig.parse(read_flags(arguments, CONFIG).model_dump())
    create_server(Tools(SpeechSession(load), config, arguments.folder, arguments.output)).run("stdio")
    return 0


def load(config: SpeechConfig, check: "Check") -> "Synthesizer":
    with contextlib.redirect_stdout(sys.stderr):  # the protocol has the standard output
        return chosen_voice(config, on_step=check)


@dataclass(frozen=True)
class Tools:
    """What an assistant can call; the model is loaded when it is first needed."""

    session: "SpeechSession"
    config: SpeechConfig
    folder: Path
    output: Path

    def speak(self, text: str, file: str, voice: str = "") -> dict[str, object]:
        """Speak a text into an audio file such as hello.wav or hello.mp3.

        The voice is one of the tool voices, an audio file in the folder, or empty for the model's own voice.
        """
        from utils.speech import tasks
        from utils.speech.types import Speech, Utterance, join

        path = resolve_inside(self.folder, file)
        make_folder(path.parent)
        config = self.config.model_copy(update={"reference": self._reference(voice)})
        request = self.session.submit(lambda model: tasks.speak_each(model, text, config), config)
        spoken = tuple(event for event in request.events() if isinstance(event, Utterance))
        speech = Speech(spoken, join(spoken), voice, config.seed)
        speech.save(path)
        warnings = [f"{number}: {flag}" for number, each in enumerate(spoken, 1) for flag in each.flags]
        return {"file": str(path), "seconds": round(speech.seconds, 2), "warnings": warnings}

    def voices(self) -> list[str]:
        """List the voices of the model."""
        request = self.session.submit(lambda model: iter([list(model.voices())]), self.config)
        return next((names for names in request.events() if names is not None), [])

    def prepare(self, project_name: str, recordings: str) -> str:
        """Turn a recording, or a folder of recordings, into clips with text. Returns at once; see the tool status."""
        path = resolve_inside(self.folder, recordings)
        if not path.exists() or SEPARATOR in str(path):
            raise InputError("no_recording", recordings, str(self.folder))
        opened = project(project_name, self.output)
        if not opened.root.exists():
            sources.require_any([str(path)])
        return describe(runs.start("prepare", DatasetConfig(inputs=str(path)), opened).fact)

    def status(self, project_name: str) -> list[dict[str, str]]:
        """List the preparations and trainings of a project, newest first."""
        opened = project(project_name, self.output)
        runs.watch_queue(opened)
        states = {run.name: run.current_state() for run in runs.list_runs(opened)}
        return [
            {"run": name, "status": state.status, "started": time.ctime(state.created), "message": state.reason()}
            for name, state in states.items()
        ]

    def _reference(self, voice: str) -> str:
        """Return the voice itself, or the path of the audio file in the folder that it names."""
        if SEPARATOR in voice:
            raise UsageError("one_voice")
        path = resolve_inside(self.folder, voice or ".")
        return str(path) if path.is_file() else voice


def create_server(tools: Tools) -> "MCPServer":
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import ToolAnnotations

    from utils.core import VERSION

    def with_errors(tool: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(tool)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return tool(*args, **kwargs)
            except AmharicTtsError as error:
                raise ToolError(str(error)) from error

        return call

    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    writes = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
    starts = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
    server = MCPServer("amharic-xtts", instructions=INSTRUCTIONS, version=VERSION, log_level="WARNING")
    server.add_tool(with_errors(tools.speak), title="Speak into a file", annotations=writes)
    server.add_tool(with_errors(tools.voices), title="List voices", annotations=reads)
    server.add_tool(with_errors(tools.prepare), title="Prepare recordings", annotations=starts)
    server.add_tool(with_errors(tools.status), title="List runs", annotations=reads)
    return server
