"""Every setting that is free text is classified as a path to read, a path to write, or words; a new one too."""

import ast
from pathlib import Path

import pytest
from pydantic import ValidationError

from utils.config import Config, DatasetConfig, DownloadConfig, FeaturesConfig, ServeConfig, SpeechConfig, TrainConfig
from utils.core.errors import ConfigError
from utils.core.paths import ROOT

CONFIGS: list[type[Config]] = [
    DatasetConfig,
    DownloadConfig,
    FeaturesConfig,
    ServeConfig,
    SpeechConfig,
    TrainConfig,
]

# Paths that are read: whoever may fill in the setting may read the file, so a page with a password gives that away.
READ = {
    "DatasetConfig.inputs", "DatasetConfig.cookies", "DatasetConfig.recogniser_model",
    "DatasetConfig.second_model", "FeaturesConfig.model",
    "ServeConfig.api_key_file", "ServeConfig.model", "ServeConfig.speech", "ServeConfig.voices", "SpeechConfig.model",
    "SpeechConfig.reference", "TrainConfig.custom_model", "TrainConfig.eval_csv", "TrainConfig.replay_data",
    "TrainConfig.score_model", "TrainConfig.train_csv",
}  # fmt: skip
# Paths that are written: the page fills them in itself, and whatever it was sent instead is not used.
WRITTEN = {"DownloadConfig.models", "TrainConfig.output_path"}
WORDS = {
    "DatasetConfig.columns", "DatasetConfig.language", "DatasetConfig.proxy",
    "DatasetConfig.speaker", "ServeConfig.host", "ServeConfig.name", "ServeConfig.origins",
    "ServeConfig.trusted_proxies", "ServeConfig.wyoming", "SpeechConfig.language",
    "TrainConfig.language", "TrainConfig.sample_texts",
}  # fmt: skip


def test_every_free_text_of_every_kind_of_settings_is_classified() -> None:
    declared = {
        node.name
        for path in (ROOT / "utils" / "config").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and node.name.endswith("Config")
    }
    assert declared - {"Config", "SpeakerConfig"} == {kind.__name__ for kind in CONFIGS}
    fields = [(kind, name, field) for kind in CONFIGS for name, field in kind.model_fields.items()]
    texts = {f"{kind.__name__}.{name}" for kind, name, field in fields if field.annotation is str}
    assert texts == READ | WRITTEN | WORDS


@pytest.mark.parametrize("name", sorted(READ | WRITTEN | WORDS))
def test_no_free_text_takes_signs_that_end_a_line_or_steer_a_terminal(name: str) -> None:
    kind = next(kind for kind in CONFIGS if kind.__name__ == name.partition(".")[0])
    for text in ("a\0b", "a\nb", "a\x1b[2Jb", "\ud800"):
        with pytest.raises((ConfigError, ValidationError)):
            kind.parse({name.partition(".")[2]: text})


def test_a_settings_file_that_grows_when_it_is_read_is_refused_at_once(tmp_path: Path) -> None:
    """Nine levels of nine aliases each: a thousand million words when they are written out."""
    lines = ['a0: &a0 ["x"]']
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 10)]
    (tmp_path / "bomb.yaml").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ConfigError, match="a0: unknown setting") as caught:
        TrainConfig.load(tmp_path / "bomb.yaml")
    assert len(str(caught.value)) < 5000
