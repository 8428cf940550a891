"""Flags: one for each field, and they win over the YAML file."""

import argparse
import shlex
from pathlib import Path

import pytest

from utils.__main__ import main
from utils.config import TrainConfig
from utils.config.flags import add_flags, command_line, read_flags


def parse(words: list[str]) -> TrainConfig:
    parser = argparse.ArgumentParser()
    add_flags(parser, TrainConfig)
    return read_flags(parser.parse_args(words), TrainConfig)


@pytest.mark.parametrize(
    ("words", "epochs"),
    [([], 3), (["--num-epochs", "7"], 7), (["--num-epochs", "10"], 10)],
    ids=["yaml", "flag", "default"],
)
def test_a_flag_wins_over_the_file(tmp_path: Path, words: list[str], epochs: int) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("num_epochs: 3\nenable_ema: true\n", encoding="utf-8")
    config = parse(["--config", str(path), *words])
    assert (config.num_epochs, config.enable_ema) == (epochs, True)


@pytest.mark.parametrize(
    "config",
    [
        TrainConfig(num_epochs=3, enable_sdpa=False, enable_ema=True, learning_rate=1e-5, tracker="wandb"),
        TrainConfig(custom_model="/my models/it's here", train_csv="ዳታ/metadata.csv"),
        TrainConfig(custom_model="-odd"),
        TrainConfig(custom_model="$(touch /tmp/x); `id` | ' \" --output=/etc"),
    ],
)
def test_the_command_shown_gives_the_same_settings_in_a_shell(config: TrainConfig) -> None:
    words = shlex.split(command_line("train", config))
    assert words[:4] == ["python", "-m", "utils", "train"]
    assert parse(words[4:]) == config


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--no_sdpa", "--ema"], "--no-enable-sdpa --enable-ema"),
        (["--enable_ema", "--no-enable_sdpa", "--batch_size=4"], "--batch-size 4 --no-enable-sdpa --enable-ema"),
        (["--sample_texts=a_b", "--no-sdpa"], "--no-enable-sdpa --sample-texts a_b"),
        (["--gradient_accumulation_steps=4"], "--grad-acumm 4"),
    ],
)
def test_flags_have_other_spellings(words: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--show", "--output_path", "/a_b", *words]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"# python -m utils train --output-path /a_b {expected}"


@pytest.mark.parametrize("words", [["--project", "a"], ["--output", "a"]])
def test_two_names_of_the_project_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--show", "--output-path", "b", *words]) == 1
    assert "--output-path" in capsys.readouterr().err


def test_project_and_output_mean_the_same_as_in_other_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--show", "--project", "a", "--output", "/b"]) == 0
    assert "--output-path /b/a" in capsys.readouterr().out
