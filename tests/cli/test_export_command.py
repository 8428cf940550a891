"""`python -m utils export`, as a person types it."""

from pathlib import Path

import pytest

from tests.xtts.exporting import RUN, finished_run, trained_state, with_adapter
from tools import random_model
from utils.__main__ import main
from utils.xtts.tokenizer import prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("words", "message"), [([], "nowhere"), (["--push", "name"], "'name'"), (["--push", "owner/name"], "HF_TOKEN")]
)
def test_a_refusal_comes_before_the_work(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    assert main(["export", "nowhere", *words, "--out", str(tmp_path / "out"), "--output", str(tmp_path)]) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_projects_runs_and_adapters_are_exported_with_their_sizes(tmp_path: Path, capsys: Capture) -> None:
    base = random_model.build(tmp_path / "models" / "tiny", sizes=random_model.RandomModelSize(layers=1))
    amharic = prepare_tokenizer(Vocabulary.load(base / "vocab.json"), "am")
    project, out = tmp_path / "output" / "mine", tmp_path / "exports"
    finished_run(project, base, amharic, trained_state(base, amharic))
    lora, _ = with_adapter(tmp_path / "output" / "other" / "runs" / RUN, base, amharic)
    report = tmp_path / "report.json"
    report.write_text('{"summary": {"mine": {"cer": 0.125}}}')

    def export(model: str, name: str, *words: str) -> int:
        return main(["export", model, "--out", str(out / name), *words, "--output", str(tmp_path / "output")])

    assert export("mine", "a", "--zip", "--safetensors", "--report", str(report)) == 0
    text = capsys.readouterr().out
    for part in (f"{out / 'a'}: ", " MB (before: ", f"{out / 'a.zip'}: "):
        assert part in text
    assert "0.125" in (out / "a" / "README.md").read_text()
    assert export(str(project / "runs" / RUN), "b", "--no-half", "--for-training") == 0
    assert (out / "b" / "dvae.pth").is_file()
    assert export(str(lora), "c", "--no-half") == 0
    assert export(str(lora), "d", "--adapter") == 0
    assert (out / "d" / "adapter.safetensors").stat().st_size < (out / "c" / "model.pth").stat().st_size / 4
    assert capsys.readouterr().err == ""
