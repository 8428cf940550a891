"""The Fine-tuning tab as a program drives it: the same events as a person's clicks, with the names of the fields."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gradio as gr
import pytest
from gradio_client import Client, handle_file  # type: ignore[import-untyped]

from tests.random_base import random_base
from tests.training.running import same, weights
from tests.training.trainable import write_dataset
from tests.ui import auditing, inside
from tests.waiting import wait_for
from utils.config.flags import flag
from utils.core.paths import ROOT
from utils.core.wording import text
from utils.studio import runs
from utils.studio.paths import UPLOADS, Project
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
        yield Client(page.url, headers=page.headers, verbose=False)
    for run in runs.list_runs(Project(output / "default")):
        runs.stop_now(run, grace=0.5)


def form(**changes: object) -> dict[str, object]:
    quick: dict[str, object] = {"custom_model": random_base(), "enable_mixed_precision": False, "sample_texts": "ሰላም"}
    quick |= {"batch_size": 2, "grad_acumm": 1, "num_epochs": 1000, "learning_rate": 1e-3}
    quick |= {"save_step": 4, "eval_step": 4}
    return {"project": "default", "settings": quick | changes, "language": "en"}


def test_a_form_with_problems_starts_nothing(client: Client, output: Path) -> None:
    problems = client.predict(**form(num_epochs=0, batch_size=None, learning_rate="fast"), api_name="/train")
    assert all(name in problems for name in ("(num_epochs)", "(batch_size)", "(learning_rate)"))
    assert runs.list_runs(Project(output / "default")) == []


def test_a_saved_file_can_be_loaded_again(client: Client, blocks: gr.Blocks, output: Path) -> None:
    check(blocks, "save_settings", num_epochs=33)
    (saved,) = (output / UPLOADS.name / settings.SETTINGS).glob("*.yaml")
    problems, values = client.predict(handle_file(saved), "en", api_name="/load_settings")
    assert "success" in problems
    assert values["num_epochs"] == 33


def test_a_broken_file_of_settings_is_refused(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("{", encoding="utf-8")
    problems, *_ = client.predict(handle_file(path), "en", api_name="/load_settings")
    assert "read as settings" in problems


def test_the_form_is_checked_against_the_dataset(blocks: gr.Blocks) -> None:
    findings = check(blocks, "check_dataset", max_text_length=10)
    assert all(
        shown in findings for shown in (text("DatasetFinding.training.cure"), text("DatasetFinding.long_texts.cure"))
    )
    assert t("training.it_fits") in check(blocks, "estimate_memory")


def check(blocks: gr.Blocks, action: str, **changes: object) -> str:
    return auditing.shown(blocks, "checks", action, "default", [form(**changes)["settings"]])


def test_page_command_and_python_give_the_same_weights(client: Client, output: Path) -> None:
    """Each in a process of its own, with dropout."""
    values: dict[str, object] = {"max_steps": 3, "save_step": 3, "seed": 7, "sample_texts": "-", "score_sentences": 0}
    given = form(**values)["settings"]
    assert isinstance(given, dict)
    projects = {name: Project(output / name) for name in ("page", "command", "python")}
    for opened in projects.values():
        write_dataset(opened.dataset, train=4, held_back=2, seconds=0.6)
    client.predict(**(form(**values) | {"project": "page"}), api_name="/train")
    flags = [f"{flag(name)}={value}" for name, value in given.items() if not isinstance(value, bool)]
    words = ["-m", "utils", "train", "--project=command", f"--output={output}", *flags, "--no-enable-mixed-precision"]
    call = f"train_gpt(**{given!r}, output_path={str(projects['python'].root)!r})"
    for arguments in (words, ["-c", f"from utils.gpt_train import train_gpt; {call}"]):
        subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, timeout=400)
    found = {name: runs.list_runs(opened)[0] for name, opened in projects.items()}
    wait_for(lambda: found["page"].current_state().status == "finished", 400)
    assert same(weights(found["page"]), weights(found["command"]))
    assert same(weights(found["page"]), weights(found["python"]))
