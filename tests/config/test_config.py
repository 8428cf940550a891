"""Settings: bounds, all errors at once, YAML there and back."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.config import DatasetConfig, TrainConfig
from utils.core.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num_epochs", 0, "num_epochs: 0 should be greater than or equal to 1"),
        ("learning_rate", False, "learning_rate: False should be a number"),
        ("learning_rate", float("nan"), "learning_rate: nan should be a finite number"),
        ("lr_scheduler", "stairs", "lr_scheduler: 'stairs' should be 'cosine', 'linear' or 'constant'"),
        ("num_epoch", 5, "num_epoch: unknown setting (did you mean num_epochs?)"),
        ("custom_model", "a\x85b", "custom_model: 'a\\x85b' contains a control character"),
        ("language", "Klingonish", "language: 'Klingonish'"),
    ],
)
def test_an_error_names_the_field_the_value_and_the_rule(name: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TrainConfig.parse({name: value})
    assert message in str(caught.value)


def test_all_errors_are_reported_together_each_in_a_short_line() -> None:
    large = {"train_csv": [[["x"] * 9] * 99] * 999, "eval_csv": "\n" * 100_000, "custom_model": {"a": {"b": {"c": 1}}}}
    values = {"num_epochs": 0, "batch_size": -1, "old_name": 3, "seed": 16**5000, **large}
    with pytest.raises(ConfigError) as caught:
        TrainConfig.parse(values, source="run.yaml")
    assert all(part in str(caught.value) for part in ("run.yaml", *values))
    assert max(map(len, str(caught.value).split("; "))) < 400
    assert len(str(caught.value)) < 1200


def test_a_rate_and_a_language_may_be_written_in_any_way(tmp_path: Path) -> None:
    path = tmp_path / "rate.yaml"
    path.write_text("learning_rate: 5e-5  # a string to YAML\nlanguage: አማርኛ\n", encoding="utf-8")
    config = TrainConfig.load(path)
    assert (config.learning_rate, config.language) == (5e-5, "am")


@given(
    st.builds(
        TrainConfig,
        num_epochs=st.integers(1, 1000),
        learning_rate=st.floats(1e-9, 1e-2),
        custom_model=st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=20),
        enable_ema=st.booleans(),
    )
)
def test_any_settings_survive_yaml(config: TrainConfig) -> None:
    import yaml

    assert TrainConfig.parse(yaml.safe_load(config.to_yaml())) == config


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: [", "read as settings"), (b"seed: 1\n\tbatch_size: 4\n", "line 2"),
        (b"batch_size: 4\nseed: 1\nbatch_size: 8\n", "line 3: duplicate setting batch_size"),
        (b"seed: 2026-99-99\n", "month must be in 1..12"), (b"train_csv: " + b"[" * 20_000, "read as settings"),
        (b"5: 3\n", "'setting: value' lines"), (b"\xff\xfe\x00", "read as settings"), (b"? {a: 1}\n: 2\n", "odd.yaml"),
        (b"a: !!python/object/apply:os.system [echo]", "read as settings"), (b"seed: 1" + b":59" * 99, "digits"),
        (b"a: &a {x: 1}\n" + b"b: &b {<<: [*a, *a]}\nc: {<<: [*b, *b]}", "merge keys"), (b"#" * (5 << 20), "too large"),
        (b"a: [" + b"1," * 20_000, "too many values"),
    ],
)  # fmt: skip
def test_a_file_that_holds_no_settings_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        TrainConfig.load(path)


def test_an_empty_file_means_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("# nothing\n", encoding="utf-8")
    assert TrainConfig.load(path) == TrainConfig()
    with pytest.raises(ConfigError, match=r"nowhere\.yaml cannot be read"):
        TrainConfig.load(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize("proxy", ["ftp://host", "just words", "http://user:secret@host:1"])
def test_a_proxy_is_an_address_without_a_password(proxy: str) -> None:
    with pytest.raises(ConfigError, match="proxy"):
        DatasetConfig.parse({"proxy": proxy})


OWN = TrainConfig(num_epochs=3).to_signed_yaml().encode()


@pytest.mark.parametrize(
    "content",
    [b"", OWN[:4], OWN[:-9], OWN[9:], OWN.replace(b"num_epochs: 3", b"num_epochs: 2"), OWN.replace(b"# end", b"# ent")],
    ids=["emptied", "all but nothing", "without end", "without start", "another value", "another end"],
)
def test_a_changed_file_of_the_program_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as error:
        TrainConfig.load_own(path)
    assert "has changed" in str(error.value)


def test_a_file_of_the_program_without_its_first_and_last_line_may_be_edited(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(b"".join(OWN.splitlines(keepends=True)[1:-1]).replace(b"num_epochs: 3", b"num_epochs: 2"))
    assert TrainConfig.load_own(path).num_epochs == 2
