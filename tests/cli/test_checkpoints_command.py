"""`python -m utils checkpoints`, as a person types it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch

from utils.__main__ import main
from utils.studio.loading import training_reference
from utils.xtts.checkpoints import CheckpointInfo, find, list_checkpoints, mark_best, write

Capture = pytest.CaptureFixture[str]
RUN = "20260101-120000-train"


def make_run(output: Path, *steps: int, run: str = RUN, **fields: Any) -> Path:
    folder = output / "default" / "runs" / run
    folder.mkdir(parents=True, exist_ok=True)
    for step in steps:
        info = CheckpointInfo(
            step=step, epoch=step / 10, train_loss=3.0, eval_loss=20 / step, settings={"number": step}, **fields
        )
        write(folder, {"gpt.weight": torch.full((4,), float(step))}, info)
    return folder


def checkpoints(output: Path, *words: str) -> int:
    return main(["checkpoints", *words, "--output", str(output)])


def test_two_are_compared(tmp_path: Path, capsys: Capture) -> None:
    make_run(tmp_path, 5)
    make_run(tmp_path, 10, run="other")
    assert checkpoints(tmp_path, "compare", RUN, "5", "newest", "--with-run", "other") == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{RUN} step 5 | other step 10\n")
    for line in ("eval_loss: 4.0000 | 2.0000", "eval_text: - | -", "number: 5 | 10", "changed by 10 (norm), 100.000%"):
        assert line in text


def test_they_are_deleted_damaged_ones_too(tmp_path: Path, capsys: Capture) -> None:
    folder = make_run(tmp_path, 5, 10, 15)
    mark_best(folder, 10)
    (folder / "checkpoints" / "step_5" / "model.safetensors").unlink()
    assert checkpoints(tmp_path, "delete", RUN, "step_5", "best") == 0
    assert [checkpoint.step for checkpoint in list_checkpoints(folder)] == [15]
    assert f"{RUN} step 10 deleted; it was the best one" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["delete", RUN], f"delete {RUN} STEP"), (["delete", RUN, "7"], "Existing checkpoints: 5"),
        (["delete", RUN, "last"], "'last'"), (["delete", "unknown", "5"], "has no run named"),
        (["compare", RUN, "5"], "two steps"), (["promote", RUN], "this checkpoint was not found"),
        (["promote", RUN, "5", "5"], "Only one"),
        (["promote", RUN, "5"], "is missing or has changed"),
        (["promote", RUN, "5", "--reference", "nowhere.wav"], "does not exist"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_to_do(tmp_path: Path, capsys: Capture, words: list[str], message: str) -> None:
    make_run(tmp_path, 5, base="/nowhere")
    assert checkpoints(tmp_path, *words) == 1
    assert message in capsys.readouterr().err


def test_the_voice_is_the_longest_clip_of_the_evaluation_list(tmp_path: Path) -> None:
    folder = make_run(tmp_path, 5)
    dataset = tmp_path / "default" / "dataset"
    (dataset / "wavs").mkdir(parents=True)
    for name, durations in {"train": (3,), "eval": (1, 2)}.items():
        lines = ["audio_file|text|speaker_name"]
        for seconds in durations:
            soundfile.write(dataset / "wavs" / f"{name}{seconds}.wav", np.zeros(22_050 * seconds), 22_050)
            lines.append(f"wavs/{name}{seconds}.wav|ሰላም|speaker")
        (dataset / f"metadata_{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write(folder, {}, CheckpointInfo(step=6))
    assert training_reference(find(folder, 6)) == dataset / "wavs" / "eval2.wav"
    assert training_reference(find(folder, 5)) is None  # its settings are not those of a training
