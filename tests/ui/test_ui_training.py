"""What stands behind the Fine-tuning tab: fields, presets, commands, forecasts, sentences."""

import argparse
import json
import shlex
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
import torch

from tests.training.trainable import write_dataset
from utils import runs
from utils.config import TrainConfig
from utils.config.flags import add_flags, read_flags
from utils.core.errors import AmharicTtsError, ConfigError, RunBusyError
from utils.core.paths import CONFIGS, Project
from utils.training.model_size import ModelSize, random_gpt
from utils.ui import error_text
from utils.ui.tabs.training import (
    checks,
    device,
    fields,
    finalize,
    forecast,
    presets,
    queries,
    render,
    run_comparison,
    start,
)
from utils.ui.tabs.training.run_history import Story
from utils.ui.tabs.training.settings_form import faulty, fill, remembered
from utils.xtts import checkpoints
from utils.xtts.checkpoints import Checkpoint, CheckpointInfo
from utils.xtts.files import BUILT_IN

NONE = {"count": 0, "named": []}
NASTY = "<img src=x onerror=alert(1)>"
CPU = {
    "kind": "cpu",
    "name": "x",
    "memory": 2**34,
    "half": "no",
    "tf32": False,
    "compiler": False,
    "bitsandbytes": False,
}
GPU = {
    "kind": "cuda",
    "name": "H200",
    "memory": 2**37,
    "half": "bf16",
    "tf32": True,
    "compiler": True,
    "bitsandbytes": True,
}
TINY = {"version": "tiny-random", "custom_model": "", "train_csv": "", "eval_csv": ""}


def write_run(project: Project, name: str, status: runs.Status, **settings: object) -> runs.Run:
    run = runs.Run(project.runs / name)
    run.folder.mkdir(parents=True)
    run.config.write_text(TrainConfig.parse(settings).to_yaml(), encoding="utf-8")
    run.write_state(runs.State("train", status, created=1.0, heartbeat=1.0))
    return run


def test_every_setting_has_its_place_and_none_has_two() -> None:
    assert sorted([*fields.SHOWN, *fields.PROJECT]) == sorted(TrainConfig.model_fields)


def test_every_setting_has_one_widget_that_reaches_the_start(blocks: gr.Blocks) -> None:
    (train,) = [fn for fn in blocks.fns.values() if fn.api_name == "train"]
    titles = [str(getattr(widget, "label", "")) for widget in train.inputs]
    wanted = [str(TrainConfig.model_fields[name].title) for name in fields.SHOWN]
    assert sorted(titles) == sorted([*wanted, "Project", "Language of the page"])
    assert len({widget._id for widget in train.inputs}) == len(titles)


def test_every_preset_can_be_chosen() -> None:
    assert set(presets.PRESETS) == {path.stem for path in CONFIGS.glob("*.yaml")}


@pytest.mark.parametrize("preset", presets.PRESETS)
def test_a_preset_fills_every_field_but_the_paths_of_this_computer(preset: str) -> None:
    config = presets.load(preset)
    filled = dict(zip(fields.SHOWN, fill(config, keep_paths=True), strict=True))
    assert {name for name, value in filled.items() if isinstance(value, dict)} == fields.KEPT - set(fields.PROJECT)
    assert all(value == getattr(config, name) for name, value in filled.items() if name not in fields.KEPT)


@pytest.mark.parametrize(
    ("name", "kept", "comes_back"),
    [
        ("num_epochs", 33, True),
        ("num_epochs", "33", False),
        ("num_epochs", None, False),
        ("num_epochs", True, False),
        ("lora_alpha", 64, True),  # a browser writes 64.0 so
        ("lora_alpha", 0.5, True),
        ("enable_lora", True, True),
        ("enable_lora", 1, False),
        ("sample_texts", "ሰላም", True),
    ],
)
def test_what_a_browser_kept_comes_back_where_it_fits(name: str, kept: object, comes_back: bool) -> None:
    found = dict(zip(fields.SHOWN, remembered(json.loads(json.dumps({name: kept, "gone": 1}))), strict=True))
    assert isinstance(found[name], dict) is not comes_back
    assert found.pop(name) == kept or not comes_back
    assert all(isinstance(value, dict) for value in found.values())  # of what was not kept, nothing changes


@pytest.mark.parametrize("kept", [None, [], [1, 2], "x"])
def test_what_no_page_of_ours_kept_changes_nothing(kept: object) -> None:
    assert all(isinstance(value, dict) for value in remembered(kept))


def read_command(words: str) -> TrainConfig:
    parser = argparse.ArgumentParser()
    add_flags(parser, TrainConfig)
    return read_flags(parser.parse_args(shlex.split(words)[4:]), TrainConfig)


@pytest.mark.parametrize("preset", presets.PRESETS)
def test_the_command_means_what_the_form_says(preset: str, tmp_path: Path) -> None:
    values = presets.load(preset).model_dump() | {"sample_texts": "ሰላም ነው? | አዎ"}
    config = start.complete(values, Project(tmp_path / "የአበበ ድምፅ"))
    assert config.output_path == str(tmp_path / "የአበበ ድምፅ")
    assert read_command(start.command(config)) == config


def test_saved_settings_can_be_loaded_again(tmp_path: Path) -> None:
    config = start.complete({"num_epochs": 3, "sample_texts": "ሰላም"}, Project(tmp_path / "p"))
    assert TrainConfig.load(start.save_settings(config, tmp_path, "p")) == config


def test_faults_of_a_form_stand_in_lines_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        start.complete({"num_epochs": 0, "batch_size": None, "use_dora": True}, Project(tmp_path))
    for language, mark in (("en", ":"), ("am", "፦")):
        assert [line.partition(mark)[0] for line in error_text.describe_each(caught.value, language)] == [
            "num_epochs",
            "batch_size",
        ]
        assert all(words in faulty(caught.value, language) for words in ("(num_epochs)" + mark, "(batch_size)" + mark))


@pytest.mark.parametrize(
    ("dataset", "status", "values", "expected"),
    [
        (False, None, TINY, "make a dataset first"),
        (True, None, TINY, ""),
        (True, runs.Status.FINISHED, TINY, ""),
        (True, runs.Status.STARTING, TINY, "r-1-train is at work"),
        (True, None, TINY | {"version": "v2.0.2"}, "Agree to the licence"),
        (True, None, TINY | {"version": "v2.0.2", "custom_model": "x"}, ""),
        (True, None, TINY | {"train_csv": "/nowhere.csv"}, "/nowhere.csv"),
    ],
)
def test_a_start_that_cannot_be_says_why(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dataset: bool,
    status: runs.Status | None,
    values: dict[str, str],
    expected: str,
) -> None:
    monkeypatch.setattr(start, "licence_accepted", lambda: False)
    project = Project(tmp_path)
    if dataset:
        write_dataset(project.dataset, train=2, held_back=1, seconds=0.5)
    if status:
        run = write_run(project, "r-1-train", status)
        run.write_state(runs.State("train", status, created=1.0, heartbeat=4e9 if status in runs.ACTIVE else 1.0))
        if status in runs.ACTIVE:
            monkeypatch.setattr("utils.runs.run._lives", lambda _state: True)
    said = start.obstacle(project, values, "en")
    assert expected in said
    assert bool(said) is bool(expected)


def test_a_start_without_consent_is_refused_with_its_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "licence_accepted", lambda: False)
    with pytest.raises(AmharicTtsError, match="Agree to it under Model and data"):
        start.start(TrainConfig(), Project(tmp_path))


@pytest.mark.parametrize("facts", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("switch", fields.SWITCHES)
def test_every_switch_says_what_it_does_here_in_both_languages(switch: str, facts: dict[str, Any]) -> None:
    english, translated = (device.hint(switch, facts, None, language) for language in ("en", "am"))
    assert "Here: " in english
    assert "እዚህ፦" in translated


@pytest.mark.parametrize(
    ("switch", "facts", "words"),
    [
        ("enable_mixed_precision", CPU, "no effect"),
        ("enable_mixed_precision", GPU, "BF16"),
        ("enable_tf32", CPU, "no effect"),
        ("use_compile", CPU, "cannot work"),
        ("optimizer", CPU, "needs an NVIDIA GPU"),
        ("optimizer", GPU, "all three"),
        ("offload_optimizer", CPU, "no gain"),
        ("enable_byte_dropout", GPU, "no effect"),
    ],
)
def test_a_switch_is_honest_about_the_device(switch: str, facts: dict[str, Any], words: str) -> None:
    assert words in device.hint(switch, facts, None, "en")


def test_after_the_start_a_switch_says_what_it_did() -> None:
    told = device.hint("enable_sdpa", CPU, (30, f"sdpa: 30 layers {NASTY}"), "en")
    assert "In this run: 30 changed" in told
    assert "30 layers" in told
    assert NASTY not in told


def values(**changes: object) -> dict[str, object]:
    return TrainConfig.parse({"version": "tiny-random", **changes}).model_dump()


@pytest.mark.parametrize("version", ["v2.0.2", *BUILT_IN])
def test_the_forecast_counts_the_weights_that_the_memory_plan_counts(version: str) -> None:
    known = forecast.SMALL.get(version, forecast.PUBLISHED)
    with torch.device("meta"):
        gpt = random_gpt(ModelSize.from_config(TrainConfig.parse({"version": version})))
    assert sum(weight.numel() for weight in gpt.parameters()) == known


def test_the_forecast_counts_updates_saves_and_bytes(tmp_path: Path) -> None:
    project = Project(tmp_path)
    write_dataset(project.dataset, train=9, held_back=1, seconds=0.3)
    found = forecast.forecast(values(batch_size=2, grad_acumm=2, num_epochs=4, save_step=5), project)
    assert (found.updates, found.saves) == (12, 3)
    assert found.checkpoint == 2 * forecast.SMALL["tiny-random"]
    assert found.resume == 12 * forecast.SMALL["tiny-random"]
    assert found.most == 3 * found.checkpoint + 2 * found.resume
    capped = forecast.forecast(values(batch_size=2, grad_acumm=2, num_epochs=4, save_step=5, max_steps=7), project)
    assert capped.updates == 7


@pytest.mark.parametrize("odd", [None, "", 0, "many"])
def test_a_forecast_stands_a_form_that_is_half_filled(tmp_path: Path, odd: object) -> None:
    found = forecast.forecast(values() | {"batch_size": odd, "save_step": odd, "num_epochs": odd}, Project(tmp_path))
    assert forecast.sentence(found, "en").startswith("Calculated: ")


def test_too_little_room_is_said() -> None:
    assert "does not fit" in forecast.sentence(forecast.Forecast(9, 1, 10**9, 10**9, 10**10, 10**9), "en")


def test_what_the_check_finds_has_a_cure() -> None:
    found = {
        "train": 10,
        "eval": 2,
        "hours": 0.5,
        "eval_minutes": 1.0,
        "longest": 12.0,
        "language": "en",
        "faults": ["line 3"],
        "fault_count": 1,
        "too_long": {"count": 1, "named": ["a.wav"]},
        "tokens": {"unknown": {"€": 2}, "lacking": {"count": 2, "named": ["b.wav"]}, "long": NONE, "most": 30},
        "unread": "",
    }
    judged = checks.check_findings(found, "en", chosen="am")
    assert [finding.verdict for finding in judged] == ["warn", "pass", "warn", "fail", "pass", "warn", "warn"]
    assert all(finding.cure for finding in judged if finding.verdict != "pass")
    unread = checks.check_findings(found | {"tokens": None, "unread": "v/vocab.json"}, "en", chosen="am")
    assert any("v/vocab.json" in finding.detail for finding in unread)


def test_the_plan_of_memory_shows_parts_and_tiers() -> None:
    found = {
        "device": "a GPU",
        "batch": "8 clips x 2",
        "peak": 2**34,
        "available": 2**33,
        "parts": [["weights", 2**30, "the model in fp32"]],
        "tiers": [[name, 2, 8, 2**32, True] for name in presets.TIERS],
        "tuned": None,
        "tuned_peak": 0,
        "advice": "These switches would make room.",
    }
    shown = checks.plan_tables(found, "en")
    assert all(words in shown for words in ("It does not fit.", "1.00 GiB", "✓ fits", "Balanced", "make room"))
    assert "የተሰላ" in checks.plan_tables(found, "am")


def test_a_question_that_failed_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    facts, begun = queries.Remembered("device"), threading.Event()

    def refuse(*_: object, **__: object) -> None:
        begun.set()
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(queries, "PAUSE", 0.0)
    monkeypatch.setattr("subprocess.Popen", refuse)
    for _ in range(2):
        wait_for(facts.known, begun.is_set)
        wait_for(facts.known, lambda: "Cannot allocate memory" in str(facts.fault))
        begun.clear()
    monkeypatch.setattr(queries, "ask", lambda _: CPU)
    wait_for(facts.known, lambda: facts.answer == CPU)
    assert facts.fault is None


def wait_for(look: Callable[[], object], is_there: Callable[[], bool]) -> None:
    """Look again and again, as the clock of the page does."""
    deadline = time.monotonic() + 20
    while not is_there():
        assert time.monotonic() < deadline
        look()
        time.sleep(0.01)


def test_the_end_of_a_test_of_memory_leaves_the_next_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        queries, "command_line", lambda *_: "python -c 'import time; print(1, flush=True); time.sleep(60)'"
    )
    trial, config = queries.Trial(), TrainConfig()
    first, second = trial.run(config), trial.run(config)
    assert next(first) == "1\n"
    with pytest.raises(RunBusyError, match="running"):
        next(second)
    trial.stop()
    assert list(first) == []
    third = trial.run(config)
    assert next(third) == "1\n"
    with pytest.raises(RunBusyError, match="running"):
        next(trial.run(config))
    trial.stop()
    assert list(third) == []


def test_runs_are_compared_by_what_differs(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = write_run(project, "a-1-train", runs.Status.FINISHED, num_epochs=3)
    second = write_run(project, "b-1-train", runs.Status.FINISHED, num_epochs=5, sample_texts=NASTY)
    told = [run_comparison.Told(run, Story(best=(1.5, 10)), run_comparison.settings_of(run)) for run in (first, second)]
    assert run_comparison.differing(told) == {"num_epochs": [3, 5], "sample_texts": ["", NASTY]}
    shown = run_comparison.compared(told, "en")
    assert "Epochs" in shown
    assert "1.5000" in shown
    assert NASTY not in shown
    assert "Choose two runs" in run_comparison.compared(told[:1], "en")


def test_a_run_with_damaged_settings_is_compared_all_the_same(tmp_path: Path) -> None:
    run = write_run(Project(tmp_path), "a-1-train", runs.Status.FINISHED)
    run.config.write_text("{", encoding="utf-8")
    assert run_comparison.settings_of(run) == {}


def test_nothing_that_a_run_tells_becomes_html(tmp_path: Path) -> None:
    run = write_run(Project(tmp_path), "a-1-train", runs.Status.FAILED)
    story = Story(switches={NASTY: (1, NASTY)}, on={NASTY: NASTY}, memory=NASTY, phase=(NASTY, 1, 2), problem_count=1)
    story.warnings.append(NASTY)
    story.problems.append(NASTY)
    story.take({"kind": "sample", "step": 1, "text": NASTY, "file": f"/x/{NASTY}.wav"})
    state = runs.State("train", runs.Status.RUNNING, created=1.0, message=NASTY)
    parts = [render.facts(run, state, story, "en"), render.messages(story, "en"), render.what_is_on(story, "en")]
    assert "<img" not in "".join([*parts, render.samples(run, story, "en"), render.curves(story, "en")])


def test_samples_are_played_from_the_folder_of_the_run(tmp_path: Path) -> None:
    run = write_run(Project(tmp_path / "የእኔ ድምፅ"), "a-1-train", runs.Status.FINISHED)
    story = Story()
    for step in (5, 10, 15, 20):
        story.take({"kind": "sample", "step": step, "text": "ሰላም", "file": f"/moved/step_{step}/1.wav"})
    shown = render.samples(run, story, "en")
    assert shown.index("step 20") < shown.index("step 5")
    assert "/samples/step_20/1.wav" in shown
    assert "/moved" not in shown
    assert shown.count("<audio") == 4
    assert shown.count("<details") == 2


def test_only_trainings_are_listed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for name in ("20261121-100000-train", "20261121-100000-train-2", "20261121-100001-rehearse", "odd"):
        (project.runs / name).mkdir(parents=True)
    assert [run.name for run in start.trainings(project)] == ["20261121-100000-train-2", "20261121-100000-train"]


def test_the_best_checkpoint_is_offered_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.Run(tmp_path)
    found = [
        Checkpoint(tmp_path / "step_20", 20, CheckpointInfo(20, eval_loss=1.25), 2 * 10**9),
        Checkpoint(tmp_path / "step_10", 10, CheckpointInfo(10), 10**6, is_best=True),
        Checkpoint(tmp_path / "step_5", 5, None, 10**6, error="damaged"),
    ]
    monkeypatch.setattr(checkpoints, "list_checkpoints", lambda _folder: found)
    offered: dict[str, Any] = finalize.offered(run, None, "en")
    assert offered["checkpoint"]["value"] == "10"
    assert [name for _, name in offered["checkpoint"]["choices"]] == ["20", "10"]
    assert "evaluation 1.2500 · 2.0 GB" in offered["checkpoint"]["choices"][0][0]
    assert offered["optimise"] == {"interactive": True}
    assert "value" not in finalize.offered(run, "20", "en")["checkpoint"]  # type: ignore[operator]
    assert "no checkpoint yet" in str(finalize.offered(None, None, "en")["optimise_reason"])
