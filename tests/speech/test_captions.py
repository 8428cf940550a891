import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.speech.made_speech import speech, utterance
from utils.core.errors import TextError
from utils.dataset.clip import Cue, Span
from utils.dataset.subtitles import read_cues
from utils.media.encoding import Chapter
from utils.speech.subtitles import audacity_labels, captions, chapters, srt, vtt, write_captions, write_chapters

LONG = "ልጆቹ ሜዳ ላይ ኳስ ሲጫወቱ ዋሉ፤ ከዚያም ሁሉም ወደ ቤት ሄደው እራት በሉና ተኙ፤ በማግስቱም እንደገና ወደ ሜዳ ሄዱ፣ ኳሱ ግን አልነበረም።"
CUES = [Cue(Span(0.0, 1.5), "ሰላም።\nደህና?"), Cue(Span(3661.2504, 3662.9996), "አዎ።")]
CHAPTERS = [Chapter("ምዕራፍ 1", 0.0, 61.5), Chapter("The\tend", 61.5, 70.0)]


def test_each_sentence_is_a_cue_at_its_time() -> None:
    spoken = speech(utterance("ሰላም።", 1.0, pause=0.5), utterance("ደህና  ነህ?", 0.5))
    assert captions(spoken) == [Cue(Span(0.0, 1.0), "ሰላም።"), Cue(Span(1.5, 2.0), "ደህና ነህ?")]


def test_a_long_sentence_becomes_cues_of_two_short_lines() -> None:
    cues = captions(speech(utterance("ሀ", 1.0), utterance(LONG, 9.0)))[1:]
    assert " ".join(" ".join(cue.text.split()) for cue in cues) == LONG
    assert all(len(line) <= 42 for cue in cues for line in cue.text.split("\n"))
    assert all(cue.text.count("\n") <= 1 for cue in cues)
    assert [cues[0].span.start, cues[-1].span.end] == pytest.approx([1.0, 10.0])
    assert all(one.span.end == pytest.approx(other.span.start) for one, other in pairwise(cues))
    shares = [cue.span.seconds / len(cue.text) for cue in cues]
    assert max(shares) < 1.1 * min(shares)


def test_subtitles_are_written_as_players_expect_them() -> None:
    assert srt(CUES) == "1\n00:00:00,000 --> 00:00:01,500\nሰላም።\nደህና?\n\n2\n01:01:01,250 --> 01:01:03,000\nአዎ።\n"
    assert vtt(CUES[:1]) == "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nሰላም።\nደህና?\n"


@pytest.mark.parametrize("ending", [".srt", ".vtt", ".SRT"])
def test_written_subtitles_can_be_read(ending: str, tmp_path: Path) -> None:
    cues = captions(speech(utterance("ሰላም & ደህና", 1.0, pause=0.5), utterance("3 < 4 --> 5", 0.5), utterance(LONG, 9.0)))
    write_captions(tmp_path / f"a{ending}", cues)
    read = read_cues(tmp_path / f"a{ending}").cues
    texts = [" ".join(cue.text.split()).replace("-->", "-->" if ending == ".vtt" else "->") for cue in cues]
    assert [cue.text for cue in read] == texts
    assert [cue.span.start for cue in read] == pytest.approx([cue.span.start for cue in cues], abs=0.001)


def test_chapters_begin_with_their_sentences_and_end_where_the_next_begins() -> None:
    titles = {"ለ": "አንድ", "መ": "ሁለት"}
    spoken = speech(*(utterance(text, 1.0, pause=0.5, chapter=titles.get(text)) for text in "ሀለሐመ"))
    assert chapters(spoken) == (Chapter("አንድ", 1.5, 4.5), Chapter("ሁለት", 4.5, 6.0))
    assert chapters(speech(utterance("ሀ", 1.0))) == ()


def test_chapters_are_written_for_audacity_and_for_podcast_players(tmp_path: Path) -> None:
    assert audacity_labels(CHAPTERS) == "0.000000\t61.500000\tምዕራፍ 1\n61.500000\t70.000000\tThe end\n"
    write_chapters(tmp_path / "a.txt", CHAPTERS)
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == audacity_labels(CHAPTERS)
    write_chapters(tmp_path / "a.json", CHAPTERS)
    entries = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["chapters"]
    assert entries[0] == {"startTime": 0.0, "endTime": 61.5, "title": "ምዕራፍ 1"}


def test_another_extension_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TextError, match=r"a\.sub"):
        write_captions(tmp_path / "a.sub", CUES)
    with pytest.raises(TextError, match="extension"):
        write_chapters(tmp_path / "a", CHAPTERS)
    assert list(tmp_path.iterdir()) == []
