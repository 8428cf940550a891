"""The card says what is known, with figures or not at all, and its program works."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.xtts.exporting import RUN, SECRET, STEP, finished, learnt
from utils.core.errors import DataError
from utils.core.paths import TINY_MODEL, Project
from utils.dataset import clip_lists
from utils.speech.open_model import open_model
from utils.workspace import model_card
from utils.workspace.model_card import Lesson, figures, write_card
from utils.workspace.publishing import PublishOptions, publish
from utils.xtts.tokenizer import Tokenizer
from utils.xtts.vocabulary import Vocabulary

REPORT = {
    "format": 1,
    "checkpoints": ["mine", "base"],
    "summary": {
        "mine": {"cer": 0.125, "similarity": 0.81, "wer": None, "flags": 0.0},
        "base": {"cer": None, "similarity": 0.5, "wer": None, "flags": 1.5},
    },
    "notes": ["No recordings of the same sentences were there."],
}


def described(folder: Path, tokenizer: Tokenizer, **known: Any) -> Any:
    """As much of an opened model as its card looks at."""
    values = {"about": {}, "checkpoint": None, "reference": None, "languages": ("am",), "tokenizer": tokenizer, **known}
    return SimpleNamespace(folder=folder, **values)


@pytest.fixture
def model(tmp_path: Path, amharic: Tokenizer) -> Any:
    about = {"base": "v2.0.3", "run": "r", "step": 1200, "epoch": 3.5, "eval_loss": 2.34567, "is_average": True}
    return described(tmp_path / "voice", amharic, about=about)


def test_it_says_what_the_model_is_and_under_which_licence(model: Any) -> None:
    text = write_card(model, "voice")
    assert text.startswith("---\nlanguage:\n- am\nlicense: other\nlicense_name: coqui-public-model-license\n")
    assert "that speaks Amharic. It was trained from XTTS v2 (v2.0.3)." in text
    assert "Coqui Public Model License 1.0.0, which allows non-commercial use only" in text
    assert "synthetic speech" in text
    assert "- updates: 1,200\n- passes over the clips: 3.5\n- loss on clips that were held back: 2.3457\n" in text
    assert "the running average" in text


def test_what_is_not_known_is_left_out(tmp_path: Path, tiny_folder: Path) -> None:
    published = Tokenizer(Vocabulary.load(tiny_folder / "vocab.json"))
    text = write_card(described(tmp_path / "foreign", published, languages=("en", "de")), "foreign")
    assert "It was trained from" not in text
    assert [title for title in ("## Training", "## Measured", "hours", "None") if title in text] == []
    assert 'model.inference("Hello.", "en"' in text
    assert "preprocess_text" not in text


def test_what_comes_with_the_program_is_ours(tiny_folder: Path, amharic: Tokenizer) -> None:
    for model in (
        described(tiny_folder, amharic),
        described(tiny_folder.parent, amharic, about={"base": "tiny-random"}),
        described(tiny_folder.parent, amharic, about={"base": "/program/utils/xtts/data/tiny"}),
        described(TINY_MODEL, amharic),
    ):
        text = write_card(model, "voice")
        assert "license: apache-2.0" in text
        assert "Coqui" not in text


def test_an_adapter_says_that_it_is_no_whole_model(model: Any) -> None:
    text = write_card(model, "voice", adapter=True)
    assert "its adapter alone" in text
    assert "load_checkpoint" not in text


def test_no_address_is_in_it(model: Any) -> None:
    assert "://" not in write_card(model, "voice")


def test_figures_come_from_the_report_and_empty_columns_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(json.dumps(REPORT))
    assert figures(tmp_path / "report.json").splitlines() == [
        "## Measured",
        "",
        "| model | wrong letters, by a recogniser | likeness of the voice (cosine) | doubtful sentences |",
        "|---|---|---|---|",
        "| mine | 0.125 | 0.810 | 0.000 |",
        "| base |  | 0.500 | 1.500 |",
        "",
        "No recordings of the same sentences were there.",
    ]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"summary": [1]}', '{"summary": {"a": 5}}'])
def test_what_is_no_report_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "report.json").write_text(content)
    with pytest.raises(DataError, match="is no report"):
        figures(tmp_path / "report.json")


@pytest.mark.slow
def test_it_finds_the_data_and_settings_of_the_run_and_tells_no_paths(
    tmp_path: Path, tiny_folder: Path, amharic: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished(tmp_path, tiny_folder, amharic, learnt(tiny_folder, amharic))
    clips = [SimpleNamespace(span=SimpleNamespace(seconds=600.0))] * 12
    for model in (open_model(Project(tmp_path).ready), open_model(tmp_path / "runs" / RUN)):
        assert model.reference  # looked for before the dataset is made up
        assert model_card.learnt(model) == Lesson(
            11, held_back=4, settings={"version": "tiny-random", "learning_rate": 3e-5}
        )
        with monkeypatch.context() as patched:
            patched.setattr(clip_lists, "read", lambda *_: SimpleNamespace(train=clips))
            text = write_card(model, "voice")
            assert "- data: 11 clips of a list of 12 with 2.00 hours; judged by 4 others\n" in text
            assert f"- updates: {STEP}\n" in text
            assert "- learning_rate: 3e-05" in text
            patched.setattr(clip_lists, "read", lambda *_: SimpleNamespace(train=clips[1:]))
            assert model_card.learnt(model).hours == 0  # the dataset has changed since
        assert SECRET not in text


@pytest.mark.slow
def test_its_program_speaks_in_plain_coqui(
    tmp_path: Path, tiny_folder: Path, amharic: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished(tmp_path, tiny_folder, amharic, learnt(tiny_folder, amharic))
    opened = open_model(Project(tmp_path).ready)
    text = write_card(opened, "voice")
    publish(opened, tmp_path / "voice", PublishOptions(), text)
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(program.replace('"am", latents, voice)', '"am", latents, voice, max_new_tokens=4)'), names)
    assert names["sound"].numel() > 1000
    (read,) = re.findall(r'inference\("(.*?)"', program)
    assert names["model"].tokenizer.encode(read, "am") == amharic.encode("ሰላም ለዓለም።", "am")
