"""A project's pronunciations reach training, preview and speech through one function."""

from pathlib import Path
from typing import Any

import pytest

from tests.xtts.small_vocabulary import write_vocabulary
from utils.__main__ import main
from utils.config import TrainConfig
from utils.core.errors import TextError
from utils.studio.models import pronunciations_of
from utils.studio.paths import Project
from utils.training.preparation import text_mode, tokenizer_for
from utils.xtts.facts import PronunciationListError
from utils.xtts.pronunciations import add_pronunciation, overrides, read_pronunciations
from utils.xtts.tokenizer import Tokenizer

TEXT = "የገና በዓል በWHO እና this ነው።"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "output" / "voice")


def test_corrections_reach_models_that_are_already_trained(project: Project) -> None:
    base = project.root.parent / "base"
    write_vocabulary(base)
    plain = tokenizer_for(base, "am", [TEXT]).encode(TEXT, "am")
    add_pronunciation(project.pronunciations, "ገና", "ገናː")
    add_pronunciation(project.pronunciations, "WHO", "የዓለም ጤና ድርጅት", "በዜና እንደሚነበብ")
    trained = tokenizer_for(base, "am", [TEXT], overrides=overrides(project.pronunciations))
    assert trained.encode(TEXT, "am") != plain
    checkpoint = project.runs / "first" / "checkpoints" / "step_5"
    for folder in (checkpoint, project.ready):
        folder.mkdir(parents=True)
        trained.save(folder)
        assert Tokenizer.load(folder, project.pronunciations).encode(TEXT, "am") == trained.encode(TEXT, "am")
    spoken, stored = Tokenizer.load(checkpoint, project.pronunciations), Tokenizer.load(checkpoint)
    add_pronunciation(project.pronunciations, "this", "ዲስ")
    assert "dis" in spoken.tokenize(TEXT, "am").model_text
    assert stored.encode(TEXT, "am") == trained.encode(TEXT, "am")  # a resumed run goes on as it began
    renewed = tokenizer_for(checkpoint, "am", [TEXT], overrides=overrides(project.pronunciations))
    assert renewed.encode(TEXT, "am") == spoken.encode(TEXT, "am")
    assert "የዓለም" in str(renewed.settings)


def test_other_languages_replace_words_in_the_text(project: Project) -> None:
    add_pronunciation(project.pronunciations, "GNU", "guh new", language="ti")
    tokenizer = tokenizer_for(
        write_vocabulary(project.root.parent).parent, "ti", [], overrides=overrides(project.pronunciations)
    )
    assert tokenizer.tokenize("a GNU, no GNUs", "ti").model_text == "a guh new, no gnus"


def test_entries_can_be_changed(project: Project) -> None:
    assert add_pronunciation(project.pronunciations, "ገና", "ገናː", "still") == "ɡənːa"
    assert add_pronunciation(project.pronunciations, "ገና", "ɡəna") == "ɡəna"
    assert read_pronunciations(project.pronunciations) == [("ገና", "ɡəna", "")]
    assert add_pronunciation(project.pronunciations, "ገና", "") == "ɡəna"
    assert read_pronunciations(project.pronunciations) == []


@pytest.mark.parametrize(("written", "spoken"), [("ገና", "9%"), ("WHO", "wiho"), (" ", "ሰላም")])
def test_what_cannot_be_spoken_is_refused(project: Project, written: str, spoken: str) -> None:
    with pytest.raises(TextError):
        add_pronunciation(project.pronunciations, written, spoken)
    assert not project.pronunciations.exists()


def test_a_damaged_line_is_named(project: Project) -> None:
    project.root.mkdir(parents=True)
    project.pronunciations.write_text("written\tspoken\tnote\n# ours\nገና\n", encoding="utf-8")
    with pytest.raises(PronunciationListError, match="tsv:3"):
        overrides(project.pronunciations)


def test_the_commands_add_list_and_apply(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--project", "voice", "--output", str(project.root.parent)]
    vocabulary = ["--vocab", str(write_vocabulary(project.root.parent / "base"))]
    assert main(["pronounce", "GIZ", "ጊዝ", "--note", "ድርጅት", *place]) == 0
    assert main(["pronounce", *place]) == 0
    assert capsys.readouterr().out == "GIZ\tɡiz\nGIZ\tጊዝ\tድርጅት\n"
    assert main(["say-how", "በGIZ", *vocabulary, *place]) == 0
    assert "bəgiz" in capsys.readouterr().out
    assert main(["pronounce", "GIZ", "--remove", *place]) == 0
    assert main(["say-how", "በGIZ", *vocabulary, *place]) == 0
    assert "bəgiz" not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ("latin", "rules")),
        ({"text_mode": "ipa", "g2p_backend": "epitran"}, ("ipa", "epitran")),
        ({"text_mode": "fidel"}, ("fidel", "rules")),
        ({"text_mode": "ipa", "use_amharic_g2p": False}, ("fidel", "rules")),
    ],
)
def test_a_run_reads_text_as_its_settings_say(
    settings: dict[str, Any], expected: tuple[str, str], tmp_path: Path
) -> None:
    config = TrainConfig(**settings)
    base = write_vocabulary(tmp_path).parent
    made = tokenizer_for(base, "am", [TEXT], text_mode(config), config.g2p_backend)
    assert made.settings is not None
    assert (made.settings.mode, made.settings.backend) == expected
    assert not made.tokenize(TEXT, "am").unknown


def test_a_model_of_a_project_has_its_pronunciations(project: Project) -> None:
    checkpoint = project.runs / "first" / "checkpoints" / "step_5"
    assert pronunciations_of(project.ready) == pronunciations_of(checkpoint) == project.pronunciations
    assert pronunciations_of(project.root / "elsewhere") is None
