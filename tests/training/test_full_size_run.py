"""The whole way, from a model of the full size in the hub's layout to a voice, with random weights."""

from pathlib import Path

import pytest

from tests.training.running import events, trained
from tests.training.trainable import write_dataset
from utils.core.paths import Project
from utils.xtts import random_model

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_a_model_of_the_full_size_goes_the_whole_way(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "dataset", train=2, held_back=1, seconds=1.0)
    model = random_model.build(tmp_path / "model", sizes=random_model.PUBLISHED)
    run = trained(
        tmp_path / "project",
        dataset,
        version="v2.0.2",
        custom_model=str(model),
        batch_size=1,
        grad_acumm=1,
        max_steps=1,
        enable_lora=True,
    )
    changed = {str(event["name"]): event["changed"] for event in events(run, "optimization")}
    assert changed["enable_lora"] == 120
    assert changed["enable_fused_gelu"] == 30
    assert [event["step"] for event in events(run, "train")] == [1]
    assert (Project(tmp_path / "project").ready / "model.pth").stat().st_size > 1.7e9
