from pathlib import Path

import pytest

from tests.xtts.small_vocabulary import write_vocabulary
from utils.xtts.coverage import MAX_LONGEST, TextRow, measure_coverage
from utils.xtts.tokenizer import Tokenizer, prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    return prepare_tokenizer(Vocabulary.load(write_vocabulary(tmp_path / "base")), "am")


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


def test_tokens_per_second_are_those_of_lines_with_a_recording(tokenizer: Tokenizer) -> None:
    coverage = measure_coverage(tokenizer, [TextRow(2, "ሰላም", 2.0), TextRow(3, "ሰላም ለዓለም")], "am")
    tokens = len(tokenizer.encode("ሰላም", "am"))
    assert f"tokens per second    {tokens / 2.0:.1f} (1 recordings, 2.0 s)" in str(coverage)
