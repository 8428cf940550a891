"""The Fine-tuning tab as a program drives it: the same events as a person's clicks, with the names of the fields."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from gradio_client import Client, handle_file  # type: ignore[import-untyped]

from tests.random_base import random_base
from tests.training.trainable import write_dataset
from tests.ui import inside
from utils import runs
from utils.config import TrainConfig
from utils.core.paths import Project
from utils.runs import Status
from utils.ui.i18n import t
from utils.ui.tabs.training import settings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("output")
    write_dataset(folder / "default" / "dataset", train=4, held_back=2, seconds=0.6)
    return folder


@pytest.fixture(scope="module")
def client(output: Path) -> Iterator[Client]:
    with inside.launched(output, 7960) as page:
        yield Client(page.url, verbose=False)
    for run in runs.list_runs(Project(output / "default")):
        runs.stop_now(run, grace=0.5)


def form(**changes: object) -> dict[str, object]:
    quick: dict[str, object] = {"custom_model": random_base(), "enable_mixed_precision": False, "sample_texts": "ሰላም"}
    quick |= {"batch_size": 2, "grad_acumm": 1, "num_epochs": 1000, "learning_rate": 1e-3}
    quick |= {"save_step": 4, "eval_step": 4}
    values = TrainConfig.parse(quick).model_dump(include=set(settings.SHOWN))
    return values | {"project": "default", "page_language": "en"} | changes


def test_problems_come_together_and_nothing_starts(client: Client, output: Path) -> None:
    *_, problems = client.predict(**form(num_epochs=0, batch_size=None, learning_rate="fast"), api_name="/train")
    assert all(name in problems for name in ("(num_epochs)", "(batch_size)", "(learning_rate)"))
    assert runs.list_runs(Project(output / "default")) == []


def test_a_saved_file_can_be_loaded_again_and_a_broken_one_is_refused(client: Client, tmp_path: Path) -> None:
    _, file = client.predict(**form(num_epochs=33), api_name="/save_settings")
    problems, *values = client.predict(handle_file(file["value"]), "en", api_name="/load_settings")
    assert "success" in problems
    assert 33 in values
    path = tmp_path / "bad.yaml"
    path.write_text("{", encoding="utf-8")
    problems, *_ = client.predict(handle_file(path), "en", api_name="/load_settings")
    assert "not valid YAML" in problems


def test_the_dataset_is_checked(client: Client) -> None:
    findings = client.predict(**form(max_text_length=10), api_name="/check_dataset")
    assert all(t(key, "en") in findings for key in ("training.little_data", "training.long_texts_cure"))


def test_the_memory_is_planned_and_one_step_measured(client: Client) -> None:
    assert t("preset.lora_6gb.title", "en") in client.predict(**form(), api_name="/memory_plan")
    job = client.submit(**form(), api_name="/memory_test")
    job.result(timeout=300)
    assert any("measured peak" in str(output) for output in job.outputs())


def test_two_starts_make_one_run_that_ends_as_the_finished_model(client: Client, output: Path) -> None:
    project = Project(output / "default")
    with ThreadPoolExecutor(2) as both:
        list(both.map(lambda _: client.predict(**form(), api_name="/train"), range(2)))
    (run,) = runs.list_runs(project)
    assert TrainConfig.load(run.config).learning_rate == 1e-3
    deadline = time.monotonic() + 400
    while not list((run.folder / "checkpoints").glob("step_*/checkpoint.json")) and time.monotonic() < deadline:
        time.sleep(0.5)
    with pytest.raises(Exception, match=run.name):
        client.predict("default", run.name, "en", api_name="/training_delete_run")
    client.predict("default", run.name, "en", api_name="/training_stop_now")
    assert run.current_state().status is Status.STOPPED
    with pytest.raises(Exception, match="folder name"):
        client.predict("default", "../../etc", "4", False, "en", api_name="/optimize_model")
    assert "success" in client.predict("default", run.name, "4", False, "en", api_name="/optimize_model")
    assert (project.ready / "model.pth").is_file()
    _, compared = client.predict("default", [run.name, run.name], "en", api_name="/compare_runs")
    assert t("training.best_evaluation", "en") in compared
    assert 1000 in client.predict("default", run.name, "en", api_name="/take_settings")
