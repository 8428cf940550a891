"""Subtitle files become clean cues, and every change is a warning."""

from pathlib import Path

import pytest

from utils.core.errors import DataError
from utils.dataset.subtitles import fit_cues, read_cues
from utils.recognition.spans import Cue, Span

GOOD = "1\n00:00:01,000 --> 00:00:02,500\nሰላም ነው?\n\n2\n00:00:03,000 --> 00:00:04,000\nደህና\nነኝ።\n"
DAMAGED_TTML = (
    '<tt xmlns="http://www.w3.org/ns/ttml"><body><div><p begin="00v00" end="00:00:02.000">ሰላም</p></div></body></tt>'
)
GOOD_CUES = "1-2.5 ሰላም ነው? | 3-4 ደህና ነኝ።"


def srt(cues: str) -> str:
    """Write cues as in ``1-2,5 text | 3-4 text``, in seconds of one minute."""
    blocks = []
    for number, cue in enumerate(cues.split(" | "), start=1):
        times, _, text = cue.partition(" ")
        start, end = times.split("-")
        blocks.append(f"{number}\n0:0:{start} --> 0:0:{end}\n{text}\n\n")
    return "".join(blocks)


def read(folder: Path, text: str | bytes, name: str = "film.am.srt") -> tuple[str, list[str]]:
    """Read subtitles; return the cues in the same notation, with decimal points, and the warnings."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    cues, warnings = read_cues(path)
    return " | ".join(f"{cue.span.start:g}-{cue.span.end:g} {cue.text}" for cue in cues), list(map(str, warnings))


def as_cp1252(text: str) -> str:
    """Read UTF-8 the way a program with a Western code page does."""
    return "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in text.encode())


@pytest.mark.parametrize(
    "raw",
    [
        *(GOOD.encode(encoding) for encoding in ("utf-8-sig", "utf-16", "utf-16-be")),
        GOOD.replace("\n", "\r\n").encode(),
        GOOD.replace("\n", "\r").encode(),
        GOOD.replace("\n\n", "\n").encode(),
        GOOD.replace(",000", "").replace("00:0", "0:").encode(),
        GOOD.replace("ነኝ", "<i>ነኝ</i>").replace("ሰላም", "{\\an8}<font color='#fff'>ሰላም</font>").encode(),
        GOOD.replace("ደህና\n", "- ደህና\n- ").replace("ሰላም", "&gt;&gt; ሰላም&lrm;").encode(),
    ],
)
def test_every_encoding_and_style_gives_the_same_cues(tmp_path: Path, raw: bytes) -> None:
    assert read(tmp_path, raw) == (GOOD_CUES, [])


@pytest.mark.parametrize("text", [as_cp1252(GOOD), GOOD.encode().decode("latin-1"), as_cp1252(as_cp1252(GOOD))])
def test_wrongly_decoded_text_is_repaired(tmp_path: Path, text: str) -> None:
    cues, (warning,) = read(tmp_path, text)
    assert cues == GOOD_CUES
    assert "decoded" in warning


SPOKEN_COLONS = "0-1 እንዲህ አለ፦ ቃል 0 | 1-2 እንዲህ አለ፦ ቃል 1 | 2-3 እንዲህ አለ፦ ቃል 2 | 5-6 ሰዓቱ 3፦ 20"


@pytest.mark.parametrize(
    ("cues", "expected", "facts"),
    [
        ("5-6 ሁለት | 1-2 አንድ", "1-2 አንድ | 5-6 ሁለት", ["1 cue (0:00:01.0)"]),
        ("1-3,2 አንድ | 3-5 ሁለት | 6-7 ሦስት", "1-3 አንድ | 3-5 ሁለት | 6-7 ሦስት", ["1 cue (0:00:01.0)"]),
        ("1-5 አንድ | 3-7 ሁለት | 8-9 ሦስት", "1-7 አንድ ሁለት | 8-9 ሦስት", ["1 cue (0:00:03.0)"]),
        ("1-6 ሀ | 3-8 ለ | 6-11 ሐ | 9-12 መ", "1-3 ሀ | 3-6 ለ | 6-9 ሐ | 9-12 መ", ["3 cues"]),
        ("1-2 አንድ | 4-3 ሁለት", "1-2 አንድ", ["1 cue (0:00:04.0 ሁለት)"]),
        ("1-2 አንድ | 3-xx ሁለት ነገር | 5-6 ሦስት", "1-2 አንድ | 5-6 ሦስት", ["Line 6", "ሁለት ነገር"]),
        ("1-2 አንድ | 3-4 ሰላ\ufffd | 5-6 ???? ??? ????", "1-2 አንድ", ["2 cues (0:00:03.0, 0:00:05.0)"]),
        ("1-2 አንድ | 1-2 አንድ | 4-5 አንድ", "1-2 አንድ | 4-5 አንድ", ["1 cue (0:00:01.0)"]),
        ("1-2 [ሙዚቃ] | 3-4 ♪ ላላ ♪", "3-4 ላላ", ["[ሙዚቃ] (1)", "♪ (2)", "1 cue (0:00:01.0)"]),
        (
            "0-1 አበበ፦ ሀ | 1-2 አበበ፦ ለ | 2-3 አበበ፦ ሐ | 5-6 ABEBE: ደግሞ",
            "0-1 ሀ | 1-2 ለ | 2-3 ሐ | 5-6 ደግሞ",
            ["አበበ (3), ABEBE (1)", "2 speakers"],
        ),
        (SPOKEN_COLONS, SPOKEN_COLONS, []),
        ("1-2 በዓመቱ\n1998 | 3-4 -5 ዲግሪ | 5-6 1998", "1-2 በዓመቱ 1998 | 3-4 -5 ዲግሪ | 5-6 1998", []),
    ],
    ids=[
        "out of order",
        "a short overlap is an inexact border",
        "a long overlap is joined",
        "lingering display",
        "ends before it begins",
        "damaged times",
        "lost letters",
        "twice in the file",
        "notes",
        "names of speakers",
        "a colon that belongs to the speech",
        "numbers that are spoken",
    ],
)
def test_a_damaged_file_gives_clean_cues(tmp_path: Path, cues: str, expected: str, facts: list[str]) -> None:
    clean, warnings = read(tmp_path, srt(cues))
    assert clean == expected
    assert [fact for fact in facts if not any(fact in warning for warning in warnings)] == []
    assert bool(warnings) == bool(facts)
    assert all(warning.startswith("film.am.srt: ") for warning in warnings)


ROLLING = """WEBVTT
Kind: captions
Language: am

00:00:00.000 --> 00:00:02.000 align:start position:0%
 
ሰላም<00:00:00.500><c> ለሁላችሁ</c>

00:00:02.000 --> 00:00:02.010 align:start position:0%
ሰላም ለሁላችሁ
 

00:00:02.010 --> 00:00:04.000 align:start position:0%
ሰላም ለሁላችሁ
ዛሬ<00:00:02.500><c> ዛሬ</c><00:00:03.000><c> ነው</c>

00:00:04.000 --> 00:00:04.010 align:start position:0%
ዛሬ ዛሬ ነው
 

00:00:05.010 --> 00:00:06.000 align:start position:0%
ዛሬ ዛሬ ነው
ነገ አይደለም
"""  # noqa: W293 - the blanks are in the files of the best-known site


def test_rolling_captions_are_read_once(tmp_path: Path) -> None:
    cues, warnings = read(tmp_path, ROLLING, "talk.am.vtt")
    assert cues == "0-2 ሰላም ለሁላችሁ | 2.01-4 ዛሬ ዛሬ ነው | 5.01-6 ነገ አይደለም"
    assert any("roll" in warning for warning in warnings)
    growing = srt("0-1 አዎ | 1-2 አዎ ነው | 2-3 አዎ ነው ይሁን")
    assert read(tmp_path, growing)[0] == "0-1 አዎ | 1-2 ነው | 2-3 ይሁን"
    repeated = "0-1 አዎ | 1-2 አዎ | 2-3 ነው | 3-4 ይሁን"
    assert read(tmp_path, srt(repeated)) == (repeated, [])


@pytest.mark.parametrize(
    "text",
    [
        srt("0-1 SARA: ሀ | 1-2 ለ | 3-4 ABEBE: ሐ | 4-5 መ\nSARA: ሠ"),
        srt("0-1 <v Sara>ሀ</v> | 1-2 ለ | 3-4 <v Abebe>ሐ</v> | 4-5 መ\n<v Sara>ሠ"),
    ],
    ids=["names in capitals", "tags"],
)
def test_a_speaker_talks_until_another_one_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "talk.srt").write_text(text, encoding="utf-8")
    cues, _ = read_cues(tmp_path / "talk.srt")
    speakers = [" ".join(cue.speakers).title() for cue in cues]
    assert (speakers, [cue.text for cue in cues]) == (["Sara", "Sara", "Abebe", "Abebe Sara"], ["ሀ", "ለ", "ሐ", "መ ሠ"])


@pytest.mark.parametrize(
    "text",
    [
        srt("0-1 <v Abebe Kebede Tadesse>ሀ</v> | 1-2 <v Sara M. &amp; host>[ሙዚቃ] ለ</v>"),
        srt("0-1 Abebe Kebede Tadesse: ሀ | 1-2 Sara M.: ለ | 2-3 Abebe Kebede Tadesse: ሐ"),
    ],
    ids=["tags", "a meeting"],
)
def test_long_and_rare_names_are_those_of_speakers(tmp_path: Path, text: str) -> None:
    (tmp_path / "talk.srt").write_text(text, encoding="utf-8")
    first, second, *_ = read_cues(tmp_path / "talk.srt")[0]
    assert (first.speakers, first.text) == (("Abebe Kebede Tadesse",), "ሀ")
    assert (second.speakers[0][:7], second.text) == ("Sara M.", "ለ")


def test_a_voice_tag_leaves_nothing_in_the_text(tmp_path: Path) -> None:
    (tmp_path / "talk.srt").write_text(srt("0-1 <v አበበ አለ>ሀ</v> | 1-2 <v [ሙዚቃ]>ለ</v>"), encoding="utf-8")
    assert [(cue.speakers, cue.text) for cue in read_cues(tmp_path / "talk.srt")[0]] == [
        (("አበበ አለ",), "ሀ"),
        (("አበበ አለ",), "ለ"),
    ]


def test_a_turn_without_a_name_belongs_to_nobody(tmp_path: Path) -> None:
    (tmp_path / "talk.srt").write_text(srt("0-1 SARA: ሀ | 1-2 >> ለ | 2-3 ሐ"), encoding="utf-8")
    assert [cue.speakers for cue in read_cues(tmp_path / "talk.srt")[0]] == [("SARA",), (), ()]


def test_no_tag_of_a_speaker_gets_into_the_text(tmp_path: Path) -> None:
    tags = srt("0-1 <v Abebe>ሀ</v> <v Almaz>ለ</v> | 1-2 <v Abebe>[music]</v> | 2-3 <v Dr. Abebe Kebede>ሐ</v>")
    assert read(tmp_path, tags)[0] == "0-1 ሀ ለ | 2-3 ሐ"


def test_notes_names_and_styles_of_vtt_are_not_text(tmp_path: Path) -> None:
    text = (
        "WEBVTT\n\nSTYLE\n::cue { color: white }\n\nintro\n00:01.000 --> 00:02.000 line:0\n<v Abebe>ሰላም</v>\n\n"
        "NOTE checked\nby hand\n\n2nd\n00:03.000 --> 00:04.000\nደህና\n1998\n"
    )
    assert read(tmp_path, text, "a.vtt")[0] == "1-2 ሰላም | 3-4 ደህና 1998"


def test_ass_gives_the_spoken_lines_only(tmp_path: Path) -> None:
    lines = [
        "Dialogue: 0,0:00:03.00,0:00:04.50,Default,,0,0,0,,ደህና{\\i1}\\Nነኝ{\\i0}፣ አንተስ?",
        "Dialogue: 0,0:00:0x.00,0:00:04.50,Default,,0,0,0,,ጠፋ",
        "Comment: 0,0:00:03.00,0:00:04.50,Default,,0,0,0,,not shown",
        "Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,{\\p1}m 0 0 l 10 10{\\p0}",
        "Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,{\\an8}ሰላም",
    ]
    head = (
        "[Script Info]\n\n[V4+ Styles]\nStyle: Default,Arial,no size\n\n[Events]\n"
        "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
    )
    cues, warnings = read(tmp_path, head + "\n".join(lines) + "\n", "a.ass")
    assert cues == "1-2 ሰላም | 3-4.5 ደህና ነኝ፣ አንተስ?"
    assert any("Line 9" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("content", "name", "reason"),
    [
        ("", "a.srt", "no timed cues"),
        (b"\x00\x01\x02\xff" * 50, "a.srt", "no timed cues"),
        (DAMAGED_TTML, "a.ttml", "as subtitles .TTML"),
    ],
)
def test_a_file_without_cues_is_refused(tmp_path: Path, content: str | bytes, name: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read(tmp_path, content, name)


@pytest.mark.parametrize(
    ("starts", "seconds", "fitted", "facts"),
    [
        ([3601, 3605], 10, [1, 5], "1 h"),
        ([3601, 3605], 5400, [3601, 3605], ""),  # an hour of music first
        ([3601, 7400], 3700, [3601], "1 cue (2:03:20.0)"),  # of a longer film: an hour earlier, it does not fit either
        ([1, 3605, 8], 10, [1, 8], "1 cue (1:00:05.0)"),
        ([1, 50, 60], 10, [1], "2 cues (0:00:50.0, 0:01:00.0)"),
        ([1, 9.5], 10, [1, 9.5], ""),  # half a second beyond
    ],
)
def test_cues_are_fitted_to_the_length_of_the_recording(
    starts: list[float], seconds: float, fitted: list[float], facts: str
) -> None:
    cues = [Cue(Span(start, start + 1), f"ቃል {start}") for start in sorted(starts)]
    cues, repairs = fit_cues(cues, seconds, "film.srt")
    assert [cue.span.start for cue in cues] == fitted
    assert all(cue.span.end <= seconds for cue in cues)
    assert [facts in str(fact) for fact in repairs] == ([True] if facts else [])
