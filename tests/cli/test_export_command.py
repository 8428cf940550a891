from pathlib import Path

import pytest

from tests.xtts.exporting import RUN, finished_run, trained_state, with_adapter
from utils.__main__ import main
from utils.xtts import random_model
from utils.xtts.tokenizer import prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere"], "nowhere"),
        (["nowhere", "--push", "name"], "'name'"),
        (["nowhere", "--push", "owner/name"], "HF_TOKEN"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_work(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    assert main(["export", *words, "--out", str(tmp_path / "out"), "--output", str(tmp_path)]) == 1
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_projects_runs_and_adapters_are_exported_with_their_sizes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = random_model.build(tmp_path / "models" / "tiny", sizes=random_model.RandomModelSize(layers=1))
    amharic = prepare_tokenizer(Vocabulary.load(base / "vocab.json"), "am")
    project = tmp_path / "output" / "mine"
    finished_run(project, base, amharic, trained_state(base, amharic))
    lora, _ = with_adapter(tmp_path / "output" / "other" / "runs" / RUN, base, amharic)
    (tmp_path / "report.json").write_text('{"summary": {"mine": {"cer": 0.125}}}')
    out = tmp_path / "exports"
    shared = ["--output", str(tmp_path / "output")]

    report = ["--report", str(tmp_path / "report.json")]
    assert main(["export", "mine", "--out", str(out / "a"), "--zip", "--safetensors", *report, *shared]) == 0
    told = capsys.readouterr().out
    assert f"{out / 'a'}: " in told
    assert " MB (before: " in told
    assert f"{out / 'a.zip'}: " in told
    assert "0.125" in (out / "a" / "README.md").read_text()

    run = str(project / "runs" / RUN)
    assert main(["export", run, "--out", str(out / "b"), "--no-half", "--for-training", *shared]) == 0
    assert (out / "b" / "dvae.pth").is_file()
    assert main(["export", str(lora), "--out", str(out / "c"), "--no-half", *shared]) == 0
    assert main(["export", str(lora), "--out", str(out / "d"), "--adapter", *shared]) == 0
    sizes = {name: (out / name / "README.md").parent for name in "bcd"}
    assert (sizes["d"] / "adapter.safetensors").stat().st_size < (sizes["c"] / "model.pth").stat().st_size / 4
    assert capsys.readouterr().err == ""
