"""Texts against the speech of a human reader, in the folder that AMHARIC_TTS_HUMAN_SPEECH names; skipped without it.

The limits were chosen with LJ Speech among others, so it shows that this reader is still understood, not that any is.
"""

import argparse
import os
from pathlib import Path

import pytest

from benchmarks.alignment import human

READER = os.environ.get("AMHARIC_TTS_HUMAN_SPEECH", "")
pytestmark = [pytest.mark.long, pytest.mark.skipif(not READER, reason="AMHARIC_TTS_HUMAN_SPEECH names no folder")]


def measured(folder: Path, wrong: int) -> tuple[float, float, int]:
    return human(argparse.Namespace(work=folder, human=Path(READER), wrong=wrong, seed=0))


def test_a_reader_with_a_transcript_is_cut_between_words(tmp_path: Path) -> None:
    kept, within, cut = measured(tmp_path, 0)
    assert kept >= 0.9
    assert within >= 0.95
    assert cut == 0


def test_swapped_texts_of_a_reader_are_excluded(tmp_path: Path) -> None:
    found, lost, _ = measured(tmp_path, 6)
    assert found >= 0.9
    assert lost <= 0.05
