from collections.abc import Callable
from pathlib import Path

import pytest

from utils.core.errors import AmharicTtsError
from utils.speech.models import find_model


@pytest.mark.parametrize(
    ("make", "name", "message"),
    [
        (Path.exists, "", "no finished model"),
        (Path.exists, "tyny", "Did you mean tiny"),
        (Path.exists, "x" * 300, "File name too long"),
        (lambda folder: (folder / "a.wav").touch(), "{folder}/a.wav", "a file"),
        (lambda folder: (folder / "runs").mkdir(), "{folder}", "neither a finished model nor a checkpoint"),
        (lambda folder: (folder / "checkpoints").mkdir(), "{folder}", "no checkpoint yet"),
        (lambda folder: (folder / "checkpoints/step_1").mkdir(parents=True), "{folder}", "checkpoint.json"),
        (lambda folder: (folder / "notes.txt").touch(), "{folder}", "no model.pth, no config.json, no vocab.json"),
    ],
)
def test_a_path_without_a_model_is_refused(
    tmp_path: Path, make: Callable[[Path], object], name: str, message: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    make(folder)
    with pytest.raises(AmharicTtsError, match=message) as caught:
        find_model(name.format(folder=folder), tmp_path)
    assert caught.value.hint
