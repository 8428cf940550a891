"""The model card states only what is known, and its example program works."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.xtts.exporting import RUN, SECRET, STEP, finished_run, trained_state
from utils.core.errors import DataError
from utils.core.paths import TINY_MODEL
from utils.dataset import metadata
from utils.speech.loading import open_model
from utils.studio.model_card import write_card
from utils.studio.models import find_model
from utils.studio.paths import Project
from utils.studio.publishing import PublishOptions, publish
from utils.xtts.tokenizer import Tokenizer
from utils.xtts.vocabulary import Vocabulary


def opened_model(folder: Path, tokenizer: Tokenizer, **fields: Any) -> Any:
    """As much of an opened model as its card reads."""
    values: dict[str, Any] = {
        "about": {},
        "checkpoint": None,
        "reference": None,
        "languages": ("am",),
        "tokenizer": tokenizer,
    }
    return SimpleNamespace(folder=folder, **(values | fields))


@pytest.fixture
def model(tmp_path: Path, amharic: Tokenizer) -> Any:
    about = {"base": "v2.0.3", "run": "r", "step": 1200, "epoch": 3.5, "eval_loss": 2.34567, "is_average": True}
    return opened_model(tmp_path / "voice", amharic, about=about)


def test_the_card_names_language_base_licence_and_training(model: Any) -> None:
    text = write_card(model, "voice")
    assert text.startswith("---\nlanguage:\n- am\nlicense: other\nlicense_name: coqui-public-model-license\n")
    for part in ("Amharic", "XTTS v2 (v2.0.3)", "non-commercial", "1,200", "3.5", "2.3457", "moving average"):
        assert part in text
    assert "://" not in text
    assert "load_checkpoint" in text
    assert "load_checkpoint" not in write_card(model, "voice", adapter=True)


def test_unknown_parts_are_left_out(tmp_path: Path, tiny_folder: Path) -> None:
    published = Tokenizer(Vocabulary.load(tiny_folder / "vocab.json"))
    text = write_card(opened_model(tmp_path / "foreign", published, languages=("en", "de")), "foreign")
    assert [part for part in ("## Training", "## Evaluation", "trained from", "None") if part in text] == []
    assert 'model.inference("Hello.", "en"' in text
    assert "preprocess_text" not in text


def test_the_embedded_voice_has_our_licence(tiny_folder: Path, amharic: Tokenizer) -> None:
    text = write_card(
        opened_model(tiny_folder.parent, amharic, about={"base": "/program/utils/xtts/data/tiny"}), "voice"
    )
    assert "license: apache-2.0" in text
    assert "Coqui" not in text
    assert "license: apache-2.0" in write_card(opened_model(TINY_MODEL, amharic), "voice")


def test_the_card_has_the_error_rates_of_a_report(model: Any, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text('{"summary": {"mine": {"cer": 0.125}}}')
    assert "0.125" in write_card(model, "voice", report=tmp_path / "report.json")


@pytest.mark.parametrize("content", ["", "{}", '{"summary": [1]}', '{"summary": {"a": 5}}'])
def test_a_file_that_is_no_report_is_refused(model: Any, tmp_path: Path, content: str) -> None:
    (tmp_path / "report.json").write_text(content)
    with pytest.raises(DataError, match=r"report\.json"):
        write_card(model, "voice", report=tmp_path / "report.json")


@pytest.mark.slow
def test_the_card_says_what_the_run_had(
    tmp_path: Path, tiny_folder: Path, amharic: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished_run(tmp_path, tiny_folder, amharic, trained_state(tiny_folder, amharic))
    clips = [SimpleNamespace(span=SimpleNamespace(seconds=600.0))] * 12
    ready, checkpoint = open_model(Project(tmp_path).ready), open_model(find_model(tmp_path / "runs" / RUN))
    for model in (ready, checkpoint):
        assert model.reference  # chosen before the dataset is replaced
        assert "- data: 11 clips; 4 held out" in write_card(model, "voice")  # there is no dataset
        monkeypatch.setattr(metadata, "read_clips", lambda *_: SimpleNamespace(train=clips[1:]))
        assert "- data: 11 clips; 4 held out" in write_card(model, "voice")  # the dataset has changed
        monkeypatch.setattr(metadata, "read_clips", lambda *_: SimpleNamespace(train=clips))
        text = write_card(model, "voice")
        assert "- data: 11 clips of 12 listed (2.00 hours); 4 held out" in text
        assert f"- steps: {STEP}\n" in text
        assert "- learning_rate: 3e-05" in text
        assert "num_epochs" not in text  # it has its default
        assert SECRET not in text
        monkeypatch.undo()


@pytest.mark.slow
def test_the_program_of_the_card_speaks_in_plain_coqui(
    tmp_path: Path, tiny_folder: Path, amharic: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished_run(tmp_path, tiny_folder, amharic, trained_state(tiny_folder, amharic))
    ready = open_model(Project(tmp_path).ready)
    publish(ready, tmp_path / "voice", PublishOptions(), text := write_card(ready, "voice"))
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(program.replace('"hi", latents, voice)', '"hi", latents, voice, max_new_tokens=4)'), names)
    assert names["samples"].numel() > 1000
    (text,) = re.findall(r'inference\("(.*?)"', program)
    assert names["model"].tokenizer.encode(text, "hi")[1:] == amharic.encode(text, "am")[1:]
