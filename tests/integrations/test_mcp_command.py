"""An assistant speaks, prepares and looks at runs through the real MCP client, in one folder only."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
import soundfile
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from testing import random_model
from utils.core import VERSION
from utils.core.paths import ROOT

pytestmark = pytest.mark.slow

CALLS: list[tuple[str, dict[str, str]]] = [
    ("speak", {"text": "ሰላም።", "file": "out/hello.mp3"}),
    ("voices", {}),
    ("prepare", {"project_name": "mine", "recordings": "talk.wav"}),
    ("status", {"project_name": "mine"}),
    # outside of the folder
    ("speak", {"text": "ሰላም።", "file": "../hello.wav"}),
    ("speak", {"text": "ሰላም።", "file": "a.wav", "voice": "/etc/passwd"}),
    ("prepare", {"project_name": "mine", "recordings": "/etc"}),
    ("status", {"project_name": "../etc"}),
    # a folder without recordings
    ("prepare", {"project_name": "typo", "recordings": "notes"}),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("assistant")
    soundfile.write(folder / "talk.wav", random_model.synthetic_speech(2.0, 1), 22_050)
    (folder / "notes").mkdir()
    return folder


@pytest.fixture(scope="module")
def results(folder: Path) -> list[Any]:
    """What an assistant is told who calls tools one after the other."""

    async def talk() -> list[Any]:
        words = ["-m", "utils", "mcp", "--folder", str(folder), "--output", str(folder / "projects"), "--model", "tiny"]
        async with (
            stdio_client(StdioServerParameters(command=sys.executable, args=words, cwd=ROOT)) as (reader, writer),
            ClientSession(reader, writer) as session,
        ):
            about = await session.initialize()
            assert about.server_info.version == VERSION
            tools = (await session.list_tools()).tools
            read_only = {tool.name: tool.annotations and tool.annotations.read_only_hint for tool in tools}
            assert read_only == {"speak": False, "voices": True, "prepare": False, "status": True}
            return [await session.call_tool(name, arguments) for name, arguments in CALLS]

    return asyncio.run(asyncio.wait_for(talk(), 200))


def test_an_assistant_speaks_prepares_and_asks(folder: Path, results: list[Any]) -> None:
    spoken, voices, prepared, status = results[:4]
    assert not spoken.is_error
    assert soundfile.info(folder / "out" / "hello.mp3").duration > 0.2
    assert "Genet" in voices.content[0].text or "Genet" in str(voices.structured_content)
    assert "is running in" in prepared.content[0].text
    assert "prepare" in str(status.structured_content)


def test_nothing_outside_the_folder_is_read_or_written(folder: Path, results: list[Any]) -> None:
    assert all(result.is_error for result in results[4:8])
    assert "outside" in results[4].content[0].text
    assert not (folder.parent / "hello.wav").exists()


def test_a_folder_without_recordings_makes_no_project(folder: Path, results: list[Any]) -> None:
    assert results[8].is_error
    assert "notes" in results[8].content[0].text
    assert not (folder / "projects" / "typo").exists()
