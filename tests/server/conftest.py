from collections.abc import Iterator
from pathlib import Path

import pytest
import soundfile

from tests.server.fake_server import CHUNK, Served, served


@pytest.fixture(scope="session")
def voices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two voices, and files that are no voices."""
    folder = tmp_path_factory.mktemp("voices")
    (folder / "many").mkdir()
    (folder / "empty").mkdir()
    for name in ("Kebede.wav", "many/1.wav", "many/2.flac", "a|b.wav", ".hidden.wav"):
        soundfile.write(folder / name, CHUNK, 24_000)
    (folder / "notes.txt").write_text("no voice")
    return folder


@pytest.fixture(scope="session")
def server(voices: Path) -> Iterator[Served]:
    with served("--voices", str(voices), "--longest-text", "500", "--active", "1", "--waiting", "3") as server:
        yield server
