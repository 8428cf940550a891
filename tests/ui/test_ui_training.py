"""The Fine-tuning tab without a browser: fields, presets, start, checks, forecast, comparison, export."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
import torch

from tests.training.trainable import write_dataset
from tests.ui import auditing
from tests.ui.data_folders import many_clips
from utils.config import TrainConfig
from utils.core import monitor
from utils.core.errors import AmharicTtsError
from utils.core.facts import Optimization
from utils.studio import paths, runs, training_checks
from utils.studio.paths import CONFIGS, Project
from utils.studio.run_history import HistoryCache, RunHistory
from utils.studio.run_state import State
from utils.training.model_size import ModelSize, random_gpt
from utils.ui.i18n import t
from utils.ui.settings_form import SettingsForm
from utils.ui.tabs.training import render, settings
from utils.xtts import checkpoints
from utils.xtts.checkpoints import CheckpointInfo
from utils.xtts.hub import VARIABLE

HTML = "<img src=x onerror=alert(1)>"
TINY = {"version": "tiny"}


def make_run(project: Project, name: str, status: runs.Status = "finished", **values: object) -> runs.Run:
    run = runs.Run(project.runs / name)
    run.folder.mkdir(parents=True)
    run.config.write_text(TrainConfig.parse(values).to_yaml(), encoding="utf-8")
    run.write_state(State("train", status, created=1.0, heartbeat=time.time()))
    return run


def test_every_setting_is_on_the_form_once() -> None:
    form = SettingsForm(TrainConfig, settings.GROUPS, "training")
    assert sorted([*form.fields, "output_path"]) == sorted(TrainConfig.model_fields)
    for language in ("en", "am"):
        shown = form.render(language)
        assert all(shown.count(f'name="{name}"') == 1 for name in form.fields)


def test_a_preset_leaves_the_paths_of_this_computer(blocks: gr.Blocks) -> None:
    assert set(settings.PRESETS) == {path.stem for path in CONFIGS.glob("*.yaml")}
    (choose,) = [event for event in blocks.fns.values() if event.api_name == "preset"]
    for preset in settings.PRESETS:
        values: dict[str, Any] = {"train_csv": "/mine.csv", "num_epochs": 999, "edits": 3}
        filled = auditing.function_of(choose)("default", preset, values, "en")[1]
        expected = settings.load_preset(preset).model_dump(mode="json", exclude={"output_path"})
        assert filled == expected | {"train_csv": "/mine.csv", "edits": 3, "preset": preset}


@pytest.mark.parametrize(
    ("gib", "clips", "preset", "why"),
    [
        (None, 20, "tiny_cpu", "Without a GPU, training XTTS v2 takes weeks."),
        (23.6, 20, "small_dataset", "More clean speech helps more than any setting"),
        (15.9, 2000, "t4", "No clip is over 10 s"),
    ],
)
def test_a_preset_is_recommended_with_the_reason(
    gib: float | None, clips: int, preset: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path)
    many_clips(project.dataset, clips, each=10)
    reading = replace(monitor.read_once(tmp_path), gpu_name="a GPU", gpu_memory_total_gib=gib)
    monkeypatch.setattr(monitor, "read_once", lambda _: reading)
    assert settings.advice_for(project).preset == preset
    assert why in settings.describe_preset(preset, project)
    assert why not in settings.describe_preset("standard", project)


def test_a_blocked_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reason(**values: str) -> str:
        return settings.start_blocked(project, TINY | values)

    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(paths, "LICENCE_CONSENT", tmp_path / "consent.json")
    project = Project(tmp_path)
    assert "metadata_train.csv" in reason()
    write_dataset(project.dataset, train=2, held_back=1, seconds=0.5)
    assert not reason()
    assert not reason(version="v2.0.2", custom_model="x")
    assert reason(version="v2.0.2") == t("training.licence_needed")
    assert "/nowhere.csv" in reason(train_csv="/nowhere.csv")
    with pytest.raises(AmharicTtsError, match="License"):
        settings.start(project, {}, lambda: None)


@pytest.mark.parametrize(
    ("version", "parameters"), [("v2.0.2", training_checks.PUBLISHED), ("tiny", training_checks.EMBEDDED)]
)
def test_the_forecast_knows_the_size_of_the_model(version: str, parameters: int) -> None:
    with torch.device("meta"):
        gpt = random_gpt(ModelSize.from_config(TrainConfig.parse({"version": version})))
    assert sum(weight.numel() for weight in gpt.parameters()) == parameters


def test_the_forecast_counts_steps_saves_and_bytes(tmp_path: Path) -> None:
    project = Project(tmp_path)
    write_dataset(project.dataset, train=9, held_back=1, seconds=0.3)
    values = {"version": "tiny", "batch_size": 2, "grad_acumm": 2, "num_epochs": 4, "save_step": 5}
    result = training_checks.forecast_disk(TrainConfig.parse(values), project)
    assert (result.updates, result.saves) == (12, 3)
    assert result.checkpoint == 2 * training_checks.EMBEDDED
    averaged = training_checks.forecast_disk(TrainConfig.parse(values | {"enable_ema": True}), project)
    assert averaged.checkpoint == 2 * result.checkpoint  # with the weights of the training itself
    assert result.resume == 12 * training_checks.EMBEDDED
    assert result.most == 3 * result.checkpoint + 2 * result.resume
    assert training_checks.forecast_disk(TrainConfig.parse(values | {"max_steps": 7}), project).updates == 7
    assert t("training.disk_full") in render.disk_forecast(replace(result, free=10**6))


def test_the_time_of_a_training_is_that_of_the_newest_run_with_the_same_model(tmp_path: Path) -> None:
    project, histories = Project(tmp_path), HistoryCache()
    write_dataset(project.dataset, train=9, held_back=1, seconds=0.3)
    config = TrainConfig.parse({"version": "tiny", "batch_size": 3, "grad_acumm": 2})
    assert settings.training_seconds(config, 10, project, histories) is None
    run = make_run(project, "20260101-000000-train", version="tiny")
    events = ({"kind": "train", "step": step, "samples_per_second": 2.0} for step in (1, 2))
    run.events.write_text("".join(f"{json.dumps(event)}\n" for event in events), encoding="utf-8")
    assert settings.training_seconds(config, 10, project, histories) == 30
    make_run(project, "20260102-000000-train", version="tiny", custom_model="/other")
    make_run(project, "20260103-000000-train", version="v2.0.3")
    assert settings.training_seconds(config, 10, project, histories) == 30
    other = config.model_copy(update={"version": "v2.0.2"})
    assert settings.training_seconds(other, 10, project, histories) is None


def test_the_amount_is_shown_with_the_time_that_it_takes(tmp_path: Path) -> None:
    many_clips(tmp_path / "dataset", 50, each=10)
    project = Project(tmp_path)
    assert render.amount(project, 240.0).endswith("→ about 4 min on this computer")
    assert "→" not in render.amount(project, None)


def test_boxes_that_exclude_each_other_are_named_as_on_the_form() -> None:
    with pytest.raises(AmharicTtsError) as caught:
        TrainConfig.parse({"use_compile": True, "enable_lora": True})
    shown = settings.settings_error(caught.value)
    assert "torch.compile (use_compile) needs LoRA (enable_lora) off" in shown
    assert 'data-setting="use_compile enable_lora"' in shown


def test_runs_are_compared_by_their_differences(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first, second = make_run(project, "a", num_epochs=3), make_run(project, "b", num_epochs=5, sample_texts=HTML)
    history = RunHistory(best=(1.5, 10))
    assert training_checks.differences([first, second]) == {"num_epochs": [3, 5], "sample_texts": ["", HTML]}
    shown = render.comparison_table([first, second], [history, history])
    assert "1.500" in shown
    assert HTML not in shown
    assert "<table" not in render.comparison_table([first], [history])
    first.config.write_text("{", encoding="utf-8")
    assert training_checks.differences([first, second]) == {}
    third = make_run(project, "c", num_epochs=3, sample_texts=HTML)
    assert training_checks.differences([first, second, third]) == {"num_epochs": ["", 5, 3]}


def test_the_text_of_a_run_is_escaped(tmp_path: Path) -> None:
    run = make_run(Project(tmp_path), "a")
    history = RunHistory(switches={HTML: Optimization(HTML, 1, HTML)}, active={HTML: HTML})
    for kind in ("warning", "problem"):
        history.add({"kind": kind, "message": HTML})
    history.add({"kind": "sample", "step": 1, "text": HTML, "file": f"/x/{HTML}.wav"})
    state = State("train", "running", created=1.0, message=HTML)
    shown = render.facts(run, state, history) + render.messages(history)
    shown += render.samples(run, history) + render.active_optimizations(run, history)
    shown += render.switch_hint("enable_sdpa", None, Optimization("enable_sdpa", 30, HTML))
    assert "<img" not in shown


@pytest.mark.parametrize(("texts", "expected"), [("-", "no samples"), ("ሰላም", "at each evaluation")])
def test_a_run_says_whether_it_will_speak_samples(tmp_path: Path, texts: str, expected: str) -> None:
    run = make_run(Project(tmp_path), "a", sample_texts=texts)
    assert expected in render.samples(run, RunHistory())


def test_samples_are_played_from_the_folder_of_the_run(tmp_path: Path) -> None:
    run, history = make_run(Project(tmp_path / "የእኔ ድምፅ"), "a"), RunHistory()
    for step in (5, 10, 15, 20):
        history.add({"kind": "sample", "step": step, "text": "ሰላም", "file": f"/moved/step_{step}/1.wav"})
    shown = render.samples(run, history)
    assert shown.index("/samples/step_20/1.wav") < shown.index("/samples/step_5/1.wav")
    assert "/moved" not in shown
    assert (shown.count("data-hear"), shown.count("<details")) == (4, 2)
    recording = run.project.dataset / "wavs" / "1.wav"
    recording.parent.mkdir(parents=True)
    recording.touch()
    event = {"kind": "sample", "step": 25, "text": "ሰላም", "file": "1.wav", "recording": "dataset/wavs/1.wav"}
    history.add(event)
    history.add(event | {"file": "2.wav", "recording": "../../etc/passwd"})
    shown = render.samples(run, history)
    assert shown.index("/samples/step_25/1.wav") < shown.index("/dataset/wavs/1.wav") < shown.index("step_25/2.wav")
    assert "passwd" not in shown


@pytest.mark.parametrize(
    ("action", "status", "said"),
    [
        ("stop_and_save", "starting", "will save and stop"), ("stop_and_save", "finished", "already ended: finished"),
        ("stop_now", "queued", "has been stopped"), ("stop_now", "failed", "already ended: failed"),
    ],
)  # fmt: skip
def test_a_stop_says_what_becomes_of_the_run(
    action: str, status: runs.Status, said: str, blocks: gr.Blocks, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []
    monkeypatch.setattr(gr, "Info", lambda message, **_: messages.append(message))
    run = make_run(Project(output / f"{action}-{status}"), "r-1-train", status)
    auditing.act(blocks, "training-runs", action, run.project.name, [""], run=run.name)
    assert [said in message for message in messages] == [True]


@pytest.mark.parametrize(("status", "is_ready"), [("finished", True), ("stopped", False), ("lost", False)])
def test_a_voice_is_ready_only_after_the_whole_training(
    status: runs.Status, is_ready: bool, blocks: gr.Blocks, output: Path
) -> None:
    run = make_run(Project(output / f"after-{status}"), "r-1-train", status)
    checkpoints.write(run.folder, {"w": torch.zeros(4)}, CheckpointInfo(2, eval_loss=1.0))
    run.events.write_text('{"kind": "train", "step": 2}\n', encoding="utf-8")
    shown = panel(blocks, "training-runs", run.project.name)
    assert (t("training.done") in shown, "✓" in shown) == (is_ready, is_ready)
    assert (t("training.stopped_early", step=2) in shown) == (status == "stopped")


def test_the_best_checkpoint_is_selected(blocks: gr.Blocks, output: Path) -> None:
    run = make_run(Project(output / "best"), "r-1-train")
    for step, loss in ((10, 1.0), (20, 1.25)):
        checkpoints.write(run.folder, {"w": torch.zeros(4)}, CheckpointInfo(step, eval_loss=loss))
    checkpoints.mark_best(run.folder, 10)
    shown = panel(blocks, "training-runs", "best")
    assert '<option value="10" selected="">' in shown
    assert shown.index('<option value="20"') < shown.index('<option value="10"')
    assert "1.250" in shown


def test_a_checkpoint_that_was_pruned_gives_way_to_the_best(blocks: gr.Blocks, output: Path) -> None:
    run = make_run(Project(output / "pruned"), "r-1-train")
    checkpoints.write(run.folder, {"w": torch.zeros(4)}, CheckpointInfo(20, eval_loss=1.0))
    checkpoints.mark_best(run.folder, 20)
    fields = {"checkpoint": "10", "of": run.name}
    updates = auditing.act(blocks, "training-runs", "", "pruned", [""], **fields)
    assert any('<option value="20" selected="">' in str(update) for update in updates.values())


def panel(blocks: gr.Blocks, elem_id: str, project: str, *given: object) -> str:
    """What a panel shows of a project."""
    return auditing.shown(blocks, elem_id, "", project, given or [""])
