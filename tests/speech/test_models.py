import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from utils.core.errors import AmharicTtsError
from utils.speech import checkpoint_model
from utils.speech.model_lookup import find_model
from utils.xtts import adapters
from utils.xtts.checkpoints import CheckpointInfo


@pytest.mark.parametrize(
    ("make", "named", "said"),
    [
        (Path.exists, "", "There is no finished model in"),
        (Path.exists, "tyny", "tyny does not exist. Did you mean tiny"),
        (Path.exists, "x" * 300, "cannot be read: File name too long"),
        (lambda folder: (folder / "a.wav").touch(), "{folder}/a.wav", "is a file, not a folder"),
        (lambda folder: (folder / "runs").mkdir(), "{folder}", "neither a finished model nor a whole checkpoint"),
        (lambda folder: (folder / "checkpoints").mkdir(), "{folder}", "has no checkpoint yet"),
        (lambda folder: (folder / "checkpoints/step_1").mkdir(parents=True), "{folder}", "checkpoint.json cannot be"),
        (
            lambda folder: (folder / "notes.txt").touch(),
            "{folder}",
            "holds no model.pth, no config.json, no vocab.json",
        ),
    ],
)
def test_places_without_a_model_are_told_apart(
    tmp_path: Path, make: Callable[[Path], object], named: str, said: str
) -> None:
    folder = tmp_path / "place"
    folder.mkdir()
    make(folder)
    with pytest.raises(AmharicTtsError) as caught:
        find_model(named.format(folder=folder), tmp_path)
    assert said in str(caught.value)
    assert caught.value.hint


def test_training_and_speech_call_their_files_alike() -> None:
    assert checkpoint_model.ADAPTED == adapters.LORA_PREFIX
    assert {field.name for field in dataclasses.fields(CheckpointInfo)} >= {
        "base",
        "base_fingerprint",
        "vocabulary_hash",
    }
