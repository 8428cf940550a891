"""The Fine-tuning tab without a browser: fields, presets, start, checks, forecast, comparison, export."""

import time
from dataclasses import replace
from pathlib import Path

import gradio as gr
import pytest
import torch

from tests.training.trainable import write_dataset
from utils import runs
from utils.config import TrainConfig
from utils.core.errors import AmharicTtsError, RunBusyError
from utils.core.paths import CONFIGS, Project
from utils.training.model_size import ModelSize, random_gpt
from utils.ui.i18n import t
from utils.ui.tabs.training import monitor, preflight, queries, render, settings
from utils.ui.tabs.training.run_history import RunHistory
from utils.ui.tabs.training.settings import form_values
from utils.xtts import checkpoints
from utils.xtts.checkpoints import CheckpointInfo

HTML = "<img src=x onerror=alert(1)>"
TINY = {"version": "tiny", "custom_model": "", "train_csv": "", "eval_csv": ""}


def make_run(project: Project, name: str, status: runs.Status = runs.Status.FINISHED, **values: object) -> runs.Run:
    run = runs.Run(project.runs / name)
    run.folder.mkdir(parents=True)
    run.config.write_text(TrainConfig.parse(values).to_yaml(), encoding="utf-8")
    run.write_state(runs.State("train", status, created=1.0, heartbeat=time.time()))
    return run


def test_every_setting_is_on_the_form_once(blocks: gr.Blocks) -> None:
    assert sorted([*settings.SHOWN, *settings.PROJECT]) == sorted(TrainConfig.model_fields)
    (train,) = [event for event in blocks.fns.values() if event.api_name == "train"]
    ids = sorted(widget.elem_id or "" for widget in train.inputs)
    assert ids == sorted(["language", "project", *(f"training-{name}" for name in settings.SHOWN)])


def test_every_settings_file_is_a_preset_that_fills_every_field_but_paths() -> None:
    assert set(settings.PRESETS) == {path.stem for path in CONFIGS.glob("*.yaml")}
    for preset in settings.PRESETS:
        config = settings.load_preset(preset)
        filled = dict(zip(settings.SHOWN, form_values(config, keep_paths=True), strict=True))
        skipped = {name for name, value in filled.items() if isinstance(value, dict)}
        assert skipped == settings.PATHS - {*settings.PROJECT}
        assert all(value == getattr(config, name) for name, value in filled.items() if name not in settings.PATHS)


@pytest.mark.parametrize(
    ("gib", "preset"),
    [
        *[(None, "tiny_cpu"), (5.9, "lora_6gb"), (7.8, "extreme_memory_optimized"), (11.9, "memory_optimized")],
        *[(14.7, "t4"), (15.9, "t4"), (23.6, "standard"), (79.6, "standard")],
    ],
)
def test_a_preset_is_recommended_for_each_gpu(gib: float | None, preset: str) -> None:
    assert settings.recommended_preset(gib) == preset


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
    make_run(project, "r-1-train", runs.Status.STARTING)
    assert "r-1-train" in reason()


@pytest.mark.parametrize(("version", "parameters"), [("v2.0.2", preflight.PUBLISHED), ("tiny", preflight.EMBEDDED)])
def test_the_forecast_knows_the_size_of_the_model(version: str, parameters: int) -> None:
    with torch.device("meta"):
        gpt = random_gpt(ModelSize.from_config(TrainConfig.parse({"version": version})))
    assert sum(weight.numel() for weight in gpt.parameters()) == parameters


def test_the_forecast_counts_steps_saves_and_bytes(tmp_path: Path) -> None:
    project = Project(tmp_path)
    write_dataset(project.dataset, train=9, held_back=1, seconds=0.3)
    values = TrainConfig.parse(
        {"version": "tiny", "batch_size": 2, "grad_acumm": 2, "num_epochs": 4, "save_step": 5}
    ).model_dump()
    result = preflight.forecast(values, project)
    assert (result.updates, result.saves) == (12, 3)
    assert result.checkpoint == 2 * preflight.EMBEDDED
    assert result.resume == 12 * preflight.EMBEDDED
    assert result.most == 3 * result.checkpoint + 2 * result.resume
    assert preflight.forecast(values | {"max_steps": 7}, project).updates == 7
    for odd in (None, "", 0, "many"):
        unfinished = values | {"batch_size": odd, "save_step": odd, "num_epochs": odd}
        assert preflight.summary(preflight.forecast(unfinished, project), "en")
    assert t("training.disk_full", "en") in preflight.summary(replace(result, free=10**6), "en")


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
    first, second = make_run(project, "a", num_epochs=3), make_run(project, "b", num_epochs=5, sample_texts=HTML)
    history = RunHistory(best=(1.5, 10))
    assert render.differences([first, second]) == {"num_epochs": [3, 5], "sample_texts": ["", HTML]}
    shown = render.comparison_table([first, second], [history, history], "en")
    assert "1.5000" in shown
    assert HTML not in shown
    assert "<table" not in render.comparison_table([first], [history], "en")
    first.config.write_text("{", encoding="utf-8")
    assert render.read_settings(first) == {}


def test_the_text_of_a_run_is_escaped(tmp_path: Path) -> None:
    run = make_run(Project(tmp_path), "a")
    history = RunHistory(switches={HTML: (1, HTML)}, active={HTML: HTML}, memory=HTML, phase=(HTML, 1, 2))
    for kind in ("warning", "problem"):
        history.add({"kind": kind, "message": HTML})
    history.add({"kind": "sample", "step": 1, "text": HTML, "file": f"/x/{HTML}.wav"})
    state = runs.State("train", runs.Status.RUNNING, created=1.0, message=HTML)
    shown = render.facts(run, state, history, "en") + render.messages(history, "en")
    shown += render.samples(run, history, "en") + render.active_optimizations(run, history, "en")
    shown += render.switch_hint("enable_sdpa", None, (30, HTML), "en")
    assert "<img" not in shown


def test_samples_are_played_from_the_folder_of_the_run(tmp_path: Path) -> None:
    run, history = make_run(Project(tmp_path / "የእኔ ድምፅ"), "a"), RunHistory()
    for step in (5, 10, 15, 20):
        history.add({"kind": "sample", "step": step, "text": "ሰላም", "file": f"/moved/step_{step}/1.wav"})
    shown = render.samples(run, history, "en")
    assert shown.index("/samples/step_20/1.wav") < shown.index("/samples/step_5/1.wav")
    assert "/moved" not in shown
    assert (shown.count("<audio"), shown.count("<details")) == (4, 2)


def test_the_best_checkpoint_is_selected(tmp_path: Path) -> None:
    run = runs.Run(tmp_path)
    assert monitor.export_updates(None, None, "en")["export"] == {"visible": False}
    for step, loss in ((10, 1.0), (20, 1.25)):
        checkpoints.write(run.folder, {"w": torch.zeros(4)}, CheckpointInfo(step, eval_loss=loss))
    checkpoints.mark_best(run.folder, 10)
    updates = monitor.export_updates(run, None, "en")
    assert updates["checkpoint"]["value"] == "10"
    assert [name for _, name in updates["checkpoint"]["choices"]] == ["20", "10"]
    assert "1.2500" in updates["checkpoint"]["choices"][0][0]
    assert updates["export"] == {"visible": True}
    assert "value" not in monitor.export_updates(run, "20", "en")["checkpoint"]
