import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.speech.made_speech import piece, speech
from utils.core.errors import TextError
from utils.dataset.clip import Cue, Span
from utils.dataset.subtitles import read_cues
from utils.media.encoding import Chapter
from utils.speech.captions import captions, chapter_json, chapters, labels, srt, vtt, write_captions, write_chapters

LONG = "ልጆቹ ሜዳ ላይ ኳስ ሲጫወቱ ዋሉ፤ ከዚያም ሁሉም ወደ ቤት ሄደው እራት በሉና ተኙ፤ በማግስቱም እንደገና ወደ ሜዳ ሄዱ፣ ኳሱ ግን አልነበረም።"
CUES = [Cue(Span(0.0, 1.5), "ሰላም።\nደህና?"), Cue(Span(3661.2504, 3662.9996), "አዎ።")]
CHAPTERS = [Chapter("ምዕራፍ 1", 0.0, 61.5), Chapter("The\tend", 61.5, 70.0)]


def test_each_piece_is_a_cue_at_its_time() -> None:
    said = speech(piece("ሰላም።", 1.0, pause=0.5), piece("ደህና  ነህ?", 0.5))
    assert captions(said) == [Cue(Span(0.0, 1.0), "ሰላም።"), Cue(Span(1.5, 2.0), "ደህና ነህ?")]


def test_a_long_piece_becomes_cues_of_two_short_lines() -> None:
    cues = captions(speech(piece("ሀ", 1.0), piece(LONG, 9.0)))[1:]
    assert " ".join(" ".join(cue.text.split()) for cue in cues) == LONG
    assert all(len(line) <= 42 for cue in cues for line in cue.text.split("\n"))
    assert all(cue.text.count("\n") <= 1 for cue in cues)
    assert [cues[0].span.start, cues[-1].span.end] == pytest.approx([1.0, 10.0])
    assert all(one.span.end == pytest.approx(other.span.start) for one, other in pairwise(cues))
    shares = [cue.span.seconds / len(cue.text) for cue in cues]
    assert max(shares) < 1.1 * min(shares)


def test_a_word_without_end_is_cut_into_lines() -> None:
    assert all(len(cue.text) <= 85 for cue in captions(speech(piece("ሰ" * 5000, 9.0))))


def test_subrip_is_written_as_players_expect_it() -> None:
    assert srt(CUES) == ("1\n00:00:00,000 --> 00:00:01,500\nሰላም።\nደህና?\n\n2\n01:01:01,250 --> 01:01:03,000\nአዎ።\n")


def test_webvtt_is_written_as_browsers_expect_it() -> None:
    assert vtt(CUES[:1]) == "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nሰላም።\nደህና?\n"


@pytest.mark.parametrize("ending", [".srt", ".vtt", ".SRT"])
def test_what_is_written_is_read_again(ending: str, tmp_path: Path) -> None:
    cues = captions(speech(piece("ሰላም & ደህና", 1.0, pause=0.5), piece("3 < 4 --> 5", 0.5), piece(LONG, 9.0)))
    write_captions(tmp_path / f"a{ending}", cues)
    read = read_cues(tmp_path / f"a{ending}").cues
    said = [" ".join(cue.text.split()).replace("-->", "-->" if ending == ".vtt" else "->") for cue in cues]
    assert [cue.text for cue in read] == said
    assert [cue.span.start for cue in read] == pytest.approx([cue.span.start for cue in cues], abs=0.001)


def test_chapters_begin_with_their_pieces_and_end_where_the_next_begins() -> None:
    titles = {"ለ": "አንድ", "መ": "ሁለት"}
    said = speech(*(replace(piece(text, 1.0, pause=0.5), chapter=titles.get(text)) for text in "ሀለሐመ"))
    assert chapters(said) == (Chapter("አንድ", 1.5, 4.5), Chapter("ሁለት", 4.5, 6.0))
    assert chapters(speech(piece("ሀ", 1.0))) == ()


def test_chapters_are_written_for_audacity_and_for_players(tmp_path: Path) -> None:
    assert labels(CHAPTERS) == "0.000000\t61.500000\tምዕራፍ 1\n61.500000\t70.000000\tThe end\n"
    first = json.loads(chapter_json(CHAPTERS))["chapters"][0]
    assert first == {"startTime": 0.0, "endTime": 61.5, "title": "ምዕራፍ 1"}
    write_chapters(tmp_path / "a.chapters.txt", CHAPTERS)
    write_chapters(tmp_path / "a.json", CHAPTERS)
    assert (tmp_path / "a.chapters.txt").read_text(encoding="utf-8") == labels(CHAPTERS)
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == chapter_json(CHAPTERS)


@pytest.mark.parametrize("name", ["a.sub", "a"])
def test_another_ending_is_refused_with_the_known_ones(name: str, tmp_path: Path) -> None:
    with pytest.raises(TextError, match=r"\.srt or \.vtt"):
        write_captions(tmp_path / name, CUES)
    with pytest.raises(TextError, match=r"\.txt or \.json"):
        write_chapters(tmp_path / name, CHAPTERS)
    assert list(tmp_path.iterdir()) == []
