"""The Fine-tuning tab without a browser: fields, presets, start, checks, forecast, comparison, export."""

import argparse
import shlex
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gradio as gr
import pytest
import torch

from tests.training.trainable import write_dataset
from utils import runs
from utils.config import TrainConfig
from utils.config.flags import add_flags, command_line, read_flags
from utils.core.errors import AmharicTtsError, RunBusyError
from utils.core.paths import CONFIGS, Project
from utils.training.model_size import ModelSize, random_gpt
from utils.ui.i18n import phrases, t
from utils.ui.tabs.training import monitor, preflight, queries, render, settings
from utils.ui.tabs.training.run_history import RunHistory
from utils.ui.tabs.training.settings import form_values, restored_values
from utils.xtts import checkpoints
from utils.xtts.checkpoints import Checkpoint, CheckpointInfo
from utils.xtts.files import BUILT_IN

NASTY = "<img src=x onerror=alert(1)>"
CPU = {"kind": "cpu", "name": "x", "memory": 2**34, "half": "no", "tf32": False, "compiler": False}
GPU = {"kind": "cuda", "name": "H200", "memory": 2**37, "half": "bf16", "tf32": True, "compiler": True}
CPU, GPU = CPU | {"bitsandbytes": False}, GPU | {"bitsandbytes": True}
TINY = {"version": "tiny-random", "custom_model": "", "train_csv": "", "eval_csv": ""}


def write_run(project: Project, name: str, status: runs.Status, heartbeat: float = 1.0, **values: object) -> runs.Run:
    run = runs.Run(project.runs / name)
    run.folder.mkdir(parents=True)
    run.config.write_text(TrainConfig.parse(values).to_yaml(), encoding="utf-8")
    run.write_state(runs.State("train", status, created=1.0, heartbeat=heartbeat))
    return run


def test_every_setting_is_on_the_form_once(blocks: gr.Blocks) -> None:
    assert sorted([*settings.SHOWN, *settings.PROJECT]) == sorted(TrainConfig.model_fields)
    (train,) = [event for event in blocks.fns.values() if event.api_name == "train"]
    ids = sorted(widget.elem_id or "" for widget in train.inputs)
    assert ids == sorted(["language", "project", *(f"training-{name}" for name in settings.SHOWN)])


def test_every_settings_file_is_a_preset_that_fills_every_field_but_paths(tmp_path: Path) -> None:
    assert set(settings.PRESETS) == {path.stem for path in CONFIGS.glob("*.yaml")}
    for preset in settings.PRESETS:
        config = settings.load_preset(preset)
        filled = dict(zip(settings.SHOWN, form_values(config, keep_paths=True), strict=True))
        skipped = {name for name, value in filled.items() if isinstance(value, dict)}
        assert skipped == settings.PATHS - {*settings.PROJECT}
        assert all(value == getattr(config, name) for name, value in filled.items() if name not in settings.PATHS)


def test_the_command_and_the_saved_file_are_the_settings_of_the_form(tmp_path: Path) -> None:
    values = settings.load_preset("lora_6gb").model_dump() | {"sample_texts": "ሰላም ነው? | አዎ"}
    config = settings.read_settings(values, Project(tmp_path / "የአበበ"))
    parser = argparse.ArgumentParser()
    add_flags(parser, TrainConfig)
    assert read_flags(parser.parse_args(shlex.split(command_line("train", config))[4:]), TrainConfig) == config
    assert TrainConfig.load(settings.save_settings(config, tmp_path, "p")) == config


def test_the_form_is_restored_from_the_browser() -> None:
    for name, value, is_restored in (
        ("num_epochs", 33, True),
        ("num_epochs", "33", False),
        ("num_epochs", True, False),
        ("lora_alpha", 64, True),  # how a browser writes 64.0
    ):
        restored = dict(zip(settings.SHOWN, restored_values({name: value, "gone": 1}), strict=True))
        assert (restored.pop(name) == value) is is_restored
        assert all(isinstance(other, dict) for other in restored.values())
    assert all(isinstance(other, dict) for other in restored_values([1, 2]))


def test_a_blocked_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reason(**values: str) -> str:
        return settings.start_blocked(project, TINY | values, "en")

    monkeypatch.setattr(settings, "licence_accepted", lambda: False)
    project = Project(tmp_path)
    assert "metadata_train.csv" in reason()
    write_dataset(project.dataset, train=2, held_back=1, seconds=0.5)
    assert not reason()
    assert not reason(version="v2.0.2", custom_model="x")
    assert reason(version="v2.0.2") == t("training.licence_needed", "en")
    assert "/nowhere.csv" in reason(train_csv="/nowhere.csv")
    with pytest.raises(AmharicTtsError, match="License"):
        settings.start(TrainConfig(), project)
    write_run(project, "r-1-train", runs.Status.STARTING, heartbeat=time.time())
    assert "r-1-train" in reason()


def test_every_switch_has_a_hint_for_the_device_and_shows_its_effect() -> None:
    gpu, cpu = render.device_hints(GPU), render.device_hints(CPU)
    assert set(gpu) == set(cpu) == set(settings.SWITCHES)
    assert (gpu["enable_mixed_precision"], cpu["enable_mixed_precision"]) == (
        "training.here_bf16",
        "training.here_no_half",
    )
    assert (gpu["optimizer"], cpu["optimizer"]) == ("training.here_all_optimizers", "training.here_8bit_needs_gpu")
    assert {*gpu.values(), *cpu.values()} <= phrases().keys()
    shown = render.switch_hint("enable_sdpa", CPU, (30, f"sdpa: 30 layers {NASTY}"), "en")
    assert "30 layers" in shown
    assert NASTY not in shown


@pytest.mark.parametrize("version", ["v2.0.2", *BUILT_IN])
def test_the_forecast_knows_the_size_of_the_model(version: str) -> None:
    with torch.device("meta"):
        gpt = random_gpt(ModelSize.from_config(TrainConfig.parse({"version": version})))
    assert sum(weight.numel() for weight in gpt.parameters()) == preflight.SMALL.get(version, preflight.PUBLISHED)


def test_the_forecast_counts_steps_saves_and_bytes(tmp_path: Path) -> None:
    project = Project(tmp_path)
    write_dataset(project.dataset, train=9, held_back=1, seconds=0.3)
    values = TrainConfig.parse(
        {"version": "tiny-random", "batch_size": 2, "grad_acumm": 2, "num_epochs": 4, "save_step": 5}
    ).model_dump()
    result = preflight.forecast(values, project)
    assert (result.updates, result.saves) == (12, 3)
    assert result.checkpoint == 2 * preflight.SMALL["tiny-random"]
    assert result.resume == 12 * preflight.SMALL["tiny-random"]
    assert result.most == 3 * result.checkpoint + 2 * result.resume
    assert preflight.forecast(values | {"max_steps": 7}, project).updates == 7
    for odd in (None, "", 0, "many"):
        unfinished = values | {"batch_size": odd, "save_step": odd, "num_epochs": odd}
        assert preflight.summary(preflight.forecast(unfinished, project), "en")
    assert t("training.disk_full", "en") in preflight.summary(replace(result, free=10**6), "en")


def test_problems_of_a_dataset_have_a_cure() -> None:
    none: dict[str, object] = {"count": 0, "named": []}
    result = {
        "train": 10,
        "eval": 2,
        "hours": 0.5,
        "eval_minutes": 1.0,
        "longest": 12.0,
        "language": "en",
        "problems": ["line 3"],
        "problem_count": 1,
        "too_long": {"count": 1, "named": ["a.wav"]},
        "tokens": {"unknown": ["€"], "lacking": {"count": 2, "named": ["b.wav"]}, "long": none, "most": 30},
        "missing_vocabulary": "",
    }
    findings = preflight.dataset_findings(result, "en", chosen="am")
    assert [finding.verdict for finding in findings] == ["warn", "pass", "warn", "fail", "pass", "warn", "warn"]
    assert all(finding.cure for finding in findings if finding.verdict != "pass")
    missing = result | {"tokens": None, "missing_vocabulary": "v/vocab.json"}
    assert any("v/vocab.json" in finding.detail for finding in preflight.dataset_findings(missing, "en", chosen="am"))


def test_the_memory_estimate_shows_parts_and_presets() -> None:
    result = {
        "device": "a GPU",
        "batch": "8 clips x 2",
        "peak": 2**34,
        "available": 2**33,
        "parts": [["weights", 2**30, "the model in fp32"]],
        "tuned": None,
        "advice": "Use LoRA.",
    }
    shown = preflight.memory_tables(result, [(name, 2, 8, 2**32) for name in settings.TIERS], "en")
    verdict = t("training.it_does_not_fit", "en")
    assert all(text in shown for text in (verdict, "16.00 GiB", "8.00 GiB", "1.00 GiB", "✓", "Use LoRA."))


def test_a_failed_query_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    cached, started = queries.CachedQuery("device"), threading.Event()

    def refuse(*_: object, **__: object) -> None:
        started.set()
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(queries, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr("subprocess.Popen", refuse)
    for _ in range(2):
        wait_for(cached.get, started.is_set)
        wait_for(cached.get, lambda: "Cannot allocate memory" in str(cached.error))
        started.clear()
    monkeypatch.setattr(queries, "ask", lambda _: CPU)
    wait_for(cached.get, lambda: cached.result == CPU)
    assert cached.error is None


def wait_for(poll: Callable[[], object], is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_done():
        assert time.monotonic() < deadline
        poll()
        time.sleep(0.01)


def test_one_memory_test_runs_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "python -c 'import time; print(1, flush=True); time.sleep(60)'"
    monkeypatch.setattr(queries, "command_line", lambda *_: command)
    memory_test, config = queries.MemoryTest(), TrainConfig()
    for _ in range(2):
        running = memory_test.run(config)
        assert next(running) == "1\n"
        with pytest.raises(RunBusyError):
            next(memory_test.run(config))
        memory_test.stop()
        assert list(running) == []


def test_runs_are_compared_by_their_differences(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = write_run(project, "a-1-train", runs.Status.FINISHED, num_epochs=3)
    second = write_run(project, "b-1-train", runs.Status.FINISHED, num_epochs=5, sample_texts=NASTY)
    history = RunHistory(best=(1.5, 10))
    history.add({"kind": "evaluation", "step": 10, "loss": 1.5})
    assert render.differences([first, second]) == {"num_epochs": [3, 5], "sample_texts": ["", NASTY]}
    shown = render.comparison_table([first, second], [history, history], "en")
    assert "1.5000" in shown
    assert NASTY not in shown
    assert "<table" not in render.comparison_table([first], [history], "en")
    first.config.write_text("{", encoding="utf-8")
    assert render.read_settings(first) == {}


def test_the_text_of_a_run_is_escaped(tmp_path: Path) -> None:
    run = write_run(Project(tmp_path), "a-1-train", runs.Status.FAILED)
    history = RunHistory(switches={NASTY: (1, NASTY)}, active={NASTY: NASTY}, memory=NASTY, phase=(NASTY, 1, 2))
    for kind in ("warning", "problem"):
        history.add({"kind": kind, "message": NASTY})
    history.add({"kind": "sample", "step": 1, "text": NASTY, "file": f"/x/{NASTY}.wav"})
    state = runs.State("train", runs.Status.RUNNING, created=1.0, message=NASTY)
    shown = render.facts(run, state, history, "en") + render.messages(history, "en")
    shown += render.samples(run, history, "en") + render.active_optimizations(run, history, "en")
    assert "<img" not in shown


def test_samples_are_played_from_the_folder_of_the_run(tmp_path: Path) -> None:
    run = write_run(Project(tmp_path / "የእኔ ድምፅ"), "a-1-train", runs.Status.FINISHED)
    history = RunHistory()
    for step in (5, 10, 15, 20):
        history.add({"kind": "sample", "step": step, "text": "ሰላም", "file": f"/moved/step_{step}/1.wav"})
    shown = render.samples(run, history, "en")
    assert shown.index("step_20") < shown.index("step_5")
    assert "/samples/step_20/1.wav" in shown
    assert "/moved" not in shown
    assert (shown.count("<audio"), shown.count("<details")) == (4, 2)


def test_the_best_checkpoint_is_selected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.Run(tmp_path)
    found = [
        Checkpoint(tmp_path / "step_20", 20, CheckpointInfo(20, eval_loss=1.25), 2 * 10**9),
        Checkpoint(tmp_path / "step_10", 10, CheckpointInfo(10), 10**6, is_best=True),
        Checkpoint(tmp_path / "step_5", 5, None, 10**6, error="damaged"),
    ]
    monkeypatch.setattr(checkpoints, "list_checkpoints", lambda _folder: found)
    updates = monitor.export_updates(run, None, "en")
    assert updates["checkpoint"]["value"] == "10"
    assert [name for _, name in updates["checkpoint"]["choices"]] == ["20", "10"]
    assert all(text in updates["checkpoint"]["choices"][0][0] for text in ("1.2500", "2.0 GB"))
    assert updates["export"] == {"interactive": True}
    assert "value" not in monitor.export_updates(run, "20", "en")["checkpoint"]
    assert monitor.export_updates(None, None, "en")["export"] == {"interactive": False}
