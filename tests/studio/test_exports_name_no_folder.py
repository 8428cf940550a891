"""Whatever is made for others names no folder of the machine where it was made."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing import random_model
from tests.dataset.layouts import audio, srt, write
from tests.xtts.exporting import RUN, SECRET, finished_run, trained_state, with_adapter
from utils.__main__ import main
from utils.xtts.tokenizer import prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

pytestmark = pytest.mark.slow
AUTHOR = "almaz-of-the-secret-home"
PREPARE = (
    "--segmenter energy --workers 1 --no-check-texts --min-snr-db -20 --min-speech-ratio 0 --recogniser none".split()
)
EVALUATE = "--count 1 --device cpu".split()


def contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield all that is in a file or a folder, packed or not."""
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            yield str(file), file.read_bytes()
            if zipfile.is_zipfile(file):  # also the weights of PyTorch
                with zipfile.ZipFile(file) as archive:
                    yield from ((f"{file}/{name}", archive.read(name)) for name in archive.namelist())


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that the commands write for others, of a project in the home folder of somebody."""
    root = tmp_path_factory.mktemp("exports")
    home, out = root / AUTHOR, root / "out"
    output = home / "output"
    words = ["--output", str(output)]
    for name in ("talk", "other"):
        audio(home / "raw", f"{name}.wav", 8)
        write(home / "raw", f"{name}.srt", srt())
    (home / "raw" / "talk.txt").write_text("ሌላ ጽሑፍ", encoding="utf-8")  # a warning names both
    assert main(["prepare", str(home / "raw"), "--project", "mine", *PREPARE, *words]) == 0
    (clip, *_) = sorted((output / "mine/dataset/wavs").iterdir())
    assert main(["dataset", "edit", clip.stem, "--project", "mine", "--text", "ሰላም ነው", *words]) == 0  # a history
    out.mkdir()
    for shape in ("zip", "ljspeech", "parquet"):
        target = out / f"{shape}{'.zip' * (shape == 'zip')}"
        assert main(["dataset", "export", shape, str(target), "--project", "mine", *words]) == 0
    base = random_model.build(home / "models" / "tiny", sizes=random_model.RandomModelSize(layers=1))
    amharic = prepare_tokenizer(Vocabulary.load(base / "vocab.json"), "am")
    finished_run(output / "mine", base, amharic, trained_state(base, amharic))
    lora, _ = with_adapter(output / "other" / "runs" / RUN, base, amharic)
    reference = ["--reference", str(home / "raw" / "talk.wav")]
    evaluate = ["evaluate", "--checkpoints", "mine", "--project", "mine", "--out", str(out / "report")]
    assert main([*evaluate, *EVALUATE, *reference, *words]) == 0
    for options in (["mine", "--zip", "--safetensors"], ["mine", "--for-training"], [str(lora), "--adapter"]):
        target = out / f"model-{len(list(out.iterdir()))}"
        more = ["--report", str(out / "report" / "report.json"), "--out", str(target)]
        assert main(["export", *options, *more, *words]) == 0
    return out


def test_no_export_names_the_folder_of_its_author(exports: Path) -> None:
    found = dict(contents(exports))
    assert len(found) > 40
    for secret in (AUTHOR.encode(), AUTHOR.encode("utf-16-le"), SECRET.encode()):
        assert [name for name, raw in found.items() if secret in raw] == []


def test_a_parquet_export_keeps_the_names_of_the_recordings(exports: Path) -> None:
    from pyarrow import parquet

    (path, *_) = sorted((exports / "parquet").rglob("*.parquet"))
    assert set(parquet.read_table(path).column("source").to_pylist()) <= {"talk.wav", "other.wav"}
