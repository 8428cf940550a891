"""Model files that were made to run a program or to fill the memory, given to everything that reads one."""

import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.recognition.tiny_ctc import make_ctc
from tests.xtts.small_dvae import write_dvae
from utils.core.errors import AmharicTtsError
from utils.recognition.recognisers import RecogniserSpec
from utils.recognition.recognisers.transformers_models import Ctc
from utils.speech.loading import read_from_file
from utils.speech.voices import VoiceCache, own_names
from utils.xtts.codec import AudioEncoder
from utils.xtts.facts import ModelFileError
from utils.xtts.model import read_state_dict
from utils.xtts.tensors import read_tensors

pytestmark = pytest.mark.slow


class Program:
    """Makes a folder when it is unpickled as usual."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.mark),))


WRITERS: dict[str, Callable[[Path, Program], object]] = {
    "torch": lambda path, program: torch.save({"model": {"a": torch.ones(2)}, "more": program}, path),
    "old torch": lambda path, program: torch.save({"model": program}, path, _use_new_zipfile_serialization=False),
    "pickle": lambda path, program: path.write_bytes(pickle.dumps(program, protocol=2)),
}


def read_cached_voice(folder: Path) -> None:
    if VoiceCache(folder).get("key", {}) is None:
        raise ModelFileError(folder, "missing")


MODELS: dict[str, Callable[[Path], object]] = {
    "dvae.pth": AudioEncoder.load,
    "mel_stats.pth": AudioEncoder.load,
    "speakers_xtts.pth": lambda folder: own_names(SimpleNamespace(folder=folder, reference=None)),  # type: ignore[arg-type]
    "best_model.pth": lambda folder: read_state_dict(folder / "best_model.pth"),
    "model.pth": lambda folder: read_from_file(folder / "model.pth")(["a"]),
}
OTHERS: dict[str, Callable[[Path], object]] = {
    "optimizer.safetensors": lambda folder: read_tensors(folder / "optimizer.safetensors"),
    "key.safetensors": read_cached_voice,
    "pytorch_model.bin": lambda folder: Ctc(RecogniserSpec(str(folder), "cpu")),
}


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A model whose file is still intact."""
    folder = tmp_path / "model"
    folder.mkdir()
    file = request.node.callspec.params["file"]
    if file in {"dvae.pth", "mel_stats.pth"}:
        write_dvae(folder)
    if file == "pytorch_model.bin":
        make_ctc(folder, adapters=False)
        (folder / "model.safetensors").unlink()
    return folder


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("file", [*MODELS, *OTHERS])
def test_no_program_in_a_file_is_run(tmp_path: Path, folder: Path, file: str, writer: str) -> None:
    WRITERS[writer](folder / file, Program(tmp_path / "ran"))
    with pytest.raises(Exception) as caught:  # noqa: PT011  # any library's own error, except for models
        (MODELS | OTHERS)[file](folder)
    assert not (tmp_path / "ran").exists()
    if file in MODELS:
        assert isinstance(caught.value, AmharicTtsError)
        assert ".pth cannot be read" in str(caught.value)
        assert caught.value.hint


@pytest.mark.parametrize("file", MODELS)
def test_a_small_file_cannot_fill_the_memory(folder: Path, file: str) -> None:
    plain, path = folder / "plain", folder / file
    torch.save({"model": {"a": torch.zeros(10_000_000)}}, plain)
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.infolist():
            target.writestr(entry.filename, source.read(entry))
    assert path.stat().st_size * 100 < plain.stat().st_size
    with pytest.raises(ModelFileError) as caught:
        MODELS[file](folder)
    assert caught.value.problem == "unreadable"


def test_a_header_of_millions_of_tensors_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes((9 << 20).to_bytes(8, "little") + b"{}" + b" " * ((9 << 20) - 2))
    with pytest.raises(AmharicTtsError, match="header is too large"):
        read_tensors(path)
