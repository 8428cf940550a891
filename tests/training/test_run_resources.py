"""What a run does with the memory and the cores of the computer."""

from pathlib import Path

import pytest

from tests.training.running import events, figures, resume, trained
from utils import gpt_train
from utils.config import TrainConfig
from utils.core.errors import ConfigError
from utils.training import memory, resume_state
from utils.training.facts import MemoryPlan
from utils.training.memory import Device
from utils.xtts import checkpoints, device, model

GIB = 2**30


@pytest.mark.slow
def test_free_memory_is_read_before_the_model_is_loaded(
    tmp_path: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the memory of the model itself counts as taken, and a run that fits is said not to."""
    loaded: list[str] = []

    def load_gpt(*arguments: object) -> object:
        loaded.append("model")
        return model.load_gpt(*arguments)  # type: ignore[arg-type]

    def detect(_: TrainConfig) -> Device:
        return Device("cpu", GIB if loaded else 999 * GIB, "CPU", half=False)

    monkeypatch.setattr(gpt_train, "load_gpt", load_gpt)
    monkeypatch.setattr(Device, "detect", detect)
    run = trained(tmp_path, dataset, max_steps=1)
    assert events(run, "memory_plan")[0]["fits"]
    assert events(run, "memory_plan")[0]["available"] == 999 * GIB


@pytest.mark.slow
def test_the_batch_size_found_stays_when_the_run_is_resumed(
    tmp_path: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimate = memory.estimate

    def only_one(config: TrainConfig, *arguments: object) -> MemoryPlan:
        plan = estimate(config, *arguments)  # type: ignore[arg-type]
        return MemoryPlan(config.batch_size == 1, plan.parts, plan.needed, plan.needed)

    monkeypatch.setattr(memory, "estimate", only_one)
    values = {"max_steps": 2, "save_step": 1, "batch_size": 4, "grad_acumm": 1, "find_batch_size": True}
    run = trained(tmp_path, dataset, **values)
    config = TrainConfig.load(run.config)
    assert (config.batch_size, config.grad_acumm) == (1, 4)
    assert not config.find_batch_size
    assert (events(run, "batch_size")[0]["batch_size"], events(run, "batch_size")[0]["grad_acumm"]) == (1, 4)
    resume(run, config.model_copy(update={"max_steps": 3}))
    assert figures(run, "step") == [1, 2, 3]


@pytest.mark.slow
def test_a_device_without_half_precision_leaves_the_setting_as_it_was(
    tmp_path: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "processor_flags", frozenset)
    values = {"enable_mixed_precision": True, "find_batch_size": True, "max_steps": 1, "save_step": 1}
    run = trained(tmp_path, dataset, **values)
    config = TrainConfig.load(run.config)
    saved = resume_state.load(run.folder / checkpoints.RESUME_FOLDER)
    assert (config.enable_mixed_precision, saved.settings["enable_mixed_precision"]) == (True, True)
    monkeypatch.setattr(device, "processor_flags", lambda: frozenset({"amx_bf16"}))
    resume(run, config.model_copy(update={"max_steps": 2}))
    assert figures(run, "step") == [1, 2]


@pytest.mark.parametrize("values", [{"num_processes": 2}, {"batch_tokens": 4000}])
def test_a_batch_size_is_not_found_where_it_means_nothing(values: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="find_batch_size"):
        TrainConfig.parse({"find_batch_size": True, **values})


@pytest.mark.parametrize(("largest", "split"), [(16, (16, 1)), (15, (8, 2)), (5, (4, 4)), (1, (1, 16))])
def test_a_measured_batch_divides_the_effective_batch(largest: int, split: tuple[int, int]) -> None:
    config = TrainConfig(version="tiny", batch_size=4, grad_acumm=4)
    found, _ = memory.fit_batch(config, Device("cpu", GIB, "CPU", half=False), largest=largest)
    assert (found.batch_size, found.grad_acumm) == split
