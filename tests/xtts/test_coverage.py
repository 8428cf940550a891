from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.xtts.small_vocabulary import write_vocabulary
from utils.core.errors import DataError
from utils.xtts.coverage import MAX_LONGEST, TextRow, measure_coverage, read_rows
from utils.xtts.tokenizer import Tokenizer, prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    return prepare_tokenizer(Vocabulary.load(write_vocabulary(tmp_path / "base")), "am")


def write_list(folder: Path, *lines: str) -> Path:
    path = folder / "metadata.csv"
    path.write_text("\n".join(["audio_file|text|speaker_name", *lines]) + "\n", encoding="utf-8")
    return path


def test_missing_symbols_are_counted_with_their_lines(tmp_path: Path) -> None:
    base = Vocabulary.load(write_vocabulary(tmp_path, without="ə"))
    poor = prepare_tokenizer(base, "am", allow_missing=True)
    coverage = measure_coverage(poor, [TextRow(2, "ሰላም"), TextRow(3, "ሰው ሰበረ"), TextRow(4, "ቡና")], "am")
    assert coverage.missing == {"ə": 2}
    assert coverage.unreadable == [2, 3]
    assert coverage.unknown > 2


def test_the_longest_sentences_are_listed(tokenizer: Tokenizer) -> None:
    rows = [TextRow(line, "ሰላም ለዓለም " * line) for line in range(1, 41)]
    coverage = measure_coverage(tokenizer, rows, "am")
    assert [line for _, line, _ in coverage.longest] == [40, 39, 38, 37, 36][:MAX_LONGEST]
    assert coverage.too_long[-1] == 40
    assert (coverage.sentences, coverage.unknown) == (40, 0)


def test_tokens_per_second_need_recordings(tokenizer: Tokenizer, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", np.zeros(44_100, dtype=np.float32), 22_050)
    path = write_list(tmp_path, "a.wav|ሰላም|x", "missing.wav|ሰላም ለዓለም|x")
    coverage = measure_coverage(tokenizer, read_rows(path), "am")
    tokens = len(tokenizer.encode("ሰላም", "am"))
    assert f"tokens per second    {tokens / 2.0:.1f} (1 recordings, 2.0 s)" in str(coverage)


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ('\ufeffaudio_file|text\r\na.wav|ሰላም "ኳ"\r\n', [(2, 'ሰላም "ኳ"')]),
        ("ሰላም\n\nቡና\n", [(1, "ሰላም"), (3, "ቡና")]),
    ],
    ids=["list from Windows", "plain text"],
)
def test_lists_and_plain_texts_are_read_with_line_numbers(
    tmp_path: Path, content: str, rows: list[tuple[int, str]]
) -> None:
    path = tmp_path / "text"
    path.write_bytes(content.encode())
    assert [(row.line, row.text) for row in read_rows(path)] == rows


def test_a_line_without_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"metadata\.csv:3: no text"):
        list(read_rows(write_list(tmp_path, "a.wav|ሰላም|x", "b.wav||x")))
