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


def converse(folder: Path, *calls: tuple[str, dict[str, str]]) -> list[Any]:
    """Call tools one after the other and return their results."""

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
            return [await session.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(asyncio.wait_for(talk(), 200))


def test_an_assistant_speaks_prepares_and_asks(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "talk.wav", random_model.synthetic_speech(2.0, 1), 22_050)
    spoken, voices, prepared, status = converse(
        tmp_path,
        ("speak", {"text": "ሰላም።", "file": "out/hello.mp3"}),
        ("voices", {}),
        ("prepare", {"project_name": "mine", "recordings": "talk.wav"}),
        ("status", {"project_name": "mine"}),
    )
    assert not spoken.is_error
    assert soundfile.info(tmp_path / "out" / "hello.mp3").duration > 0.2
    assert "Genet" in voices.content[0].text or "Genet" in str(voices.structured_content)
    assert "is running in" in prepared.content[0].text
    assert "prepare" in str(status.structured_content)


def test_nothing_outside_the_folder_is_read_or_written(tmp_path: Path) -> None:
    results = converse(
        tmp_path,
        ("speak", {"text": "ሰላም።", "file": "../hello.wav"}),
        ("speak", {"text": "ሰላም።", "file": "a.wav", "voice": "/etc/passwd"}),
        ("prepare", {"project_name": "mine", "recordings": "/etc"}),
        ("status", {"project_name": "../etc"}),
    )
    assert all(result.is_error for result in results)
    assert "outside" in results[0].content[0].text
    assert not (tmp_path.parent / "hello.wav").exists()
