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

from tests.dataset.test_recognisers import make_ctc
from tests.xtts.small_dvae import write_dvae
from tools.tiny_voice.training_loop import STATE, load_trained
from utils.core.errors import AmharicTtsError
from utils.dataset.recognisers import RecogniserSpec
from utils.dataset.recognisers.ctc import Ctc
from utils.speech.loading import read_from_file
from utils.speech.voices import VoiceCache, own_names
from utils.xtts.codec import AudioEncoder
from utils.xtts.files import ModelFileError
from utils.xtts.model import read_state_dict
from utils.xtts.tensors import read_tensors

pytestmark = pytest.mark.slow


class Program:
    """Makes a folder when it is unpickled as usual."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.mark),))


def saved_by_torch(path: Path, mark: Path) -> None:
    torch.save({"model": {"a": torch.ones(2)}, "more": Program(mark)}, path)


def saved_by_old_torch(path: Path, mark: Path) -> None:
    torch.save({"model": Program(mark)}, path, _use_new_zipfile_serialization=False)


def pickled(path: Path, mark: Path) -> None:
    path.write_bytes(pickle.dumps(Program(mark), protocol=2))


def a_dvae(folder: Path, change: Callable[[Path], object]) -> None:
    change(write_dvae(folder) / "dvae.pth")
    AudioEncoder.load(folder)


def mel_stats(folder: Path, change: Callable[[Path], object]) -> None:
    change(write_dvae(folder) / "mel_stats.pth")
    AudioEncoder.load(folder)


def voices_of_a_model(folder: Path, change: Callable[[Path], object]) -> None:
    change(folder / "speakers_xtts.pth")
    own_names(SimpleNamespace(folder=folder, reference=None))  # type: ignore[arg-type]


def weights(folder: Path, change: Callable[[Path], object]) -> None:
    change(folder / "best_model.pth")
    read_state_dict(folder / "best_model.pth")


def weights_layer_by_layer(folder: Path, change: Callable[[Path], object]) -> None:
    change(folder / "model.pth")
    read_from_file(folder / "model.pth")(["a"])


def optimiser_state(folder: Path, change: Callable[[Path], object]) -> None:
    change(folder / "optimizer.safetensors")
    read_tensors(folder / "optimizer.safetensors")


def a_kept_voice(folder: Path, change: Callable[[Path], object]) -> None:
    change(folder / "key.safetensors")
    if VoiceCache(folder).get("key", {}) is None:
        raise ModelFileError("It is made anew.")


def a_practice(folder: Path, change: Callable[[Path], object]) -> None:
    change(folder / STATE)
    load_trained(torch.nn.Linear(1, 1), folder)


def a_second_recogniser(folder: Path, change: Callable[[Path], object]) -> None:
    make_ctc(folder, adapters=False)
    (folder / "model.safetensors").unlink()
    change(folder / "pytorch_model.bin")
    Ctc(RecogniserSpec(str(folder), "cpu"))


READERS = [
    *(a_dvae, mel_stats, voices_of_a_model, weights, weights_layer_by_layer),
    *(optimiser_state, a_kept_voice, a_practice, a_second_recogniser),
]
OF_MODELS = READERS[:5]


@pytest.mark.parametrize("write", [saved_by_torch, saved_by_old_torch, pickled])
@pytest.mark.parametrize("read", READERS)
def test_no_program_in_a_file_is_run_and_a_model_with_one_is_refused_by_its_name(
    tmp_path: Path, read: Callable[..., object], write: Callable[[Path, Path], object]
) -> None:
    mark, folder = tmp_path / "ran", tmp_path / "model"
    folder.mkdir()
    with pytest.raises(Exception) as caught:  # noqa: PT011  # any library's own error, except for models
        read(folder, lambda path: write(path, mark))
    assert not mark.exists()
    if read in OF_MODELS:
        assert isinstance(caught.value, AmharicTtsError)
        assert ".pth cannot be read" in str(caught.value)
        assert caught.value.hint


def packed(path: Path) -> None:
    """Write what torch would read as 40 MB in a file that is far smaller."""
    plain = path.with_suffix(".plain")
    torch.save({"model": {"a": torch.zeros(10_000_000)}}, plain)
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.infolist():
            target.writestr(entry.filename, source.read(entry))
    assert path.stat().st_size * 100 < plain.stat().st_size
    plain.unlink()


@pytest.mark.parametrize("read", OF_MODELS)
def test_a_small_file_cannot_fill_the_memory(tmp_path: Path, read: Callable[..., object]) -> None:
    with pytest.raises(ModelFileError, match="cannot be read"):
        read(tmp_path, packed)
