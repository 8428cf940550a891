"""The training benchmark: both sides read the same, its figures follow from its rounds, and it runs from end to end."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import training, training_switches
from benchmarks.training_data import LANGUAGE, TEXT_ROWS, sentence, write_clips
from benchmarks.training_findings import Comparison, Measured
from benchmarks.training_plan import Memory, Plan, Round
from utils.config import TrainConfig
from utils.dataset.store import load_dataset
from utils.media.audio import duration

TINY = ["--layers", "1", "--dim", "64", "--clips", "4", "--batch", "2", "--threads", "1"]


def test_clips_are_2_to_9_seconds_long_in_the_list_and_in_the_manifest(tmp_path: Path) -> None:
    dataset = tmp_path / "dataset"
    write_clips(dataset, 3, seed=0)
    clips = load_dataset(dataset).kept
    rows = (dataset / "metadata_train.csv").read_text(encoding="utf-8").splitlines()
    assert [row.split("|")[:2] for row in rows[1:]] == [[clip.audio, clip.text] for clip in clips]
    assert sorted(round(duration(dataset / clip.audio), 2) for clip in clips) == [2.0, 5.5, 9.0]
    assert sorted(round(clip.span.seconds, 2) for clip in clips) == [2.0, 5.5, 9.0]
    assert len({clip.content for clip in clips}) == 3


def test_both_sides_read_the_same_ids(tmp_path: Path) -> None:
    from TTS.tts.layers.xtts.tokenizer import VoiceBpeTokenizer

    from tools.random_model import small_vocabulary
    from utils.xtts.tokenizer import Tokenizer

    small_vocabulary(TEXT_ROWS).save(tmp_path)
    text = sentence(9.0, np.random.default_rng(0))
    theirs = VoiceBpeTokenizer(vocab_file=tmp_path / "vocab.json")
    ids = Tokenizer.load(tmp_path).encode(text, LANGUAGE)
    assert ids == theirs.encode(text, LANGUAGE)
    assert len(text) / 3 < len(ids) < len(text)
    assert theirs.get_number_tokens() == TEXT_ROWS


@pytest.mark.parametrize("name", list(training_switches.SWITCHES))
def test_every_row_is_a_valid_configuration_that_differs_from_the_baseline(name: str) -> None:
    settings = training_switches.settings_of(name, Plan(layers=30))
    config = TrainConfig.parse({"grad_acumm": 1, "enable_mixed_precision": False, **settings})
    assert all(getattr(config, field) == value for field, value in settings.items())
    default = TrainConfig(grad_acumm=1, enable_mixed_precision=False)
    assert (config == default) == (name == "baseline")


def test_what_is_slow_on_a_cpu_is_left_out_there_with_a_reason_unless_it_is_asked_for() -> None:
    names = training_switches.chosen(None, "cpu")
    (row,) = training_switches.left_out(names)
    assert {*names, row.name} == set(training_switches.SWITCHES)
    assert row.note.startswith("left out: ")
    assert training_switches.chosen(None, "cuda") == list(training_switches.SWITCHES)
    assert training_switches.chosen([row.name], "cpu") == [row.name]


def measured(*seconds: float, peak: float, loss: float) -> Measured:
    rounds = [Round(one, 2 * one, 8, 44.0, 5.0) for one in seconds]
    return Measured(rounds, Memory(300.0, peak, peak / 2, 0.0), 7.0, loss, 4, ["a note"])


def test_figures_follow_from_the_medians_of_the_rounds() -> None:
    coqui, ours = measured(8.0, 10.0, 16.0, peak=2000, loss=6.0), measured(4.0, 2.0, 5.0, peak=1000, loss=5.7)
    comparison = Comparison(Plan(clips=16), coqui, ours, 12.0, "a machine", "a command", "2026-01-01")
    assert (comparison.coqui.speed, comparison.ours.speed) == (0.8, 2.0)
    assert comparison.ratio == 2.5
    assert comparison.ratios == [2.0, 5.0, 3.2]
    assert comparison.ours.range == (1.6, 4.0)
    assert comparison.ours.work == 1.0
    assert comparison.memory_share == 0.5
    assert comparison.speed_with_features == pytest.approx(1 / (0.5 + 12 / 16 / 3))
    assert comparison.ratio_with_features == pytest.approx(4 / 3 / 0.8)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", {"layers": 6, "dim": 512, "batch": 8, "workers": 0}),
        ("--switches", {"layers": 2, "dim": 128, "batch": 2, "settings": {}}),
        ("--switches --device cuda --layers 30 --dim 1024", {"layers": 30, "dim": 1024, "batch": 8, "clips": 64}),
        ("--device cuda", {"settings": {"enable_mixed_precision": True, "enable_grad_checkpoint": True}}),
        ("--set enable_ema=true lora_rank=8", {"settings": {"enable_ema": True, "lora_rank": 8}}),
    ],
)
def test_the_command_line_gives_the_plan(words: str, expected: dict[str, object]) -> None:
    plan = training.plan_of(training.parser().parse_args(words.split()))
    assert {name: getattr(plan, name) for name in expected} == expected


def run(words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the program here: its sides are processes of their own, and this one has read the libraries already."""
    monkeypatch.setattr(sys, "argv", ["benchmarks/training.py", *TINY, *words, "--results", str(folder)])
    training.main()


@pytest.mark.slow
def test_the_comparison_runs_and_both_sides_begin_with_the_same_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(["--rounds", "1", "--updates", "1"], tmp_path, monkeypatch)
    (path,) = tmp_path.glob("training_*.json")
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["ratio"] > 0
    assert found["ours"]["loss_before"] == pytest.approx(found["coqui"]["loss_before"], rel=0.01)
    assert found["ours"]["loss_after"] != found["ours"]["loss_before"]
    memory = found["coqui"]["memory"]
    assert memory["peak"] >= memory["training"] > memory["start"] > 0


@pytest.mark.slow
def test_switches_are_measured_beside_a_baseline_and_a_refusal_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ["baseline", "8-bit optimiser"]
    run(["--switches", "--updates", "4", "--only", *rows], tmp_path, monkeypatch)
    (path,) = tmp_path.glob("training_switches_*.json")
    baseline, refused = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert baseline["speed"] > 0
    assert baseline["loss"] > 0
    assert refused["speed"] is None
    assert refused["note"].startswith("refused: ")


@pytest.mark.slow
def test_the_profile_names_the_parts_of_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["--profile", "--updates", "1"], tmp_path, monkeypatch)
    said = capsys.readouterr().out
    for part in ("conditioning encoder, forward", "conditioning encoder, backward", "GPT, forward", "optimiser"):
        assert said.count(part) == 1, said
    assert not list(tmp_path.iterdir())
