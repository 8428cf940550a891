"""Any folder in: the texts of common layouts are found, and what is not used is named."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from tests.dataset.layouts import LAYOUTS, TEXTS, Layout, audio, clips, lines, write
from utils.dataset.clip import Recording, ScanResult
from utils.dataset.readers.collection import hold_back
from utils.dataset.readers.facts import TextMightExist, TextNotUsed
from utils.dataset.sources import find_recordings


def scan_of(folder: Path, workspace: Path, columns: str = "") -> ScanResult:
    return find_recordings([folder], language="am", workspace=workspace, columns=columns)


def text_of(recording: Recording) -> str:
    return recording.text or " ".join(cue.text for cue in recording.cues)


def check(scan: ScanResult, layout: Layout) -> None:
    found = {recording.path.stem: text_of(recording) for recording in scan.recordings}
    if "" in layout.expected:  # audio inside a table has no name
        assert sorted(found.values()) == sorted(TEXTS.values())
    else:
        assert found == dict(layout.expected)
    assert {bool(recording.cues) for recording in scan.recordings} == {layout.is_timed}
    assert {recording.speaker for recording in scan.recordings} == set(layout.speakers)
    reasons = [f"{problem.path.name}: {problem.reason}" for problem in scan.problems]
    assert len(reasons) == len(layout.problems), reasons
    assert all(part in reason for part, reason in zip(layout.problems, reasons, strict=True)), reasons


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_every_layout_is_read_with_its_texts(tmp_path: Path, layout: Layout) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    layout.build(folder)
    check(scan_of(folder, tmp_path / "workspace"), layout)


@pytest.mark.parametrize(("name", "why"), [("notes.xyz", "unknown"), ("list.xlsx", "document")])
def test_no_clip_of_a_preparation_is_left_silently_without_text(
    tmp_path: Path, name: str, why: Literal["unknown", "document"]
) -> None:
    clips(tmp_path)
    write(tmp_path, name, lines("{text}"))
    scan = scan_of(tmp_path, tmp_path / "workspace")
    held = hold_back(scan)
    assert [problem.reason for problem in scan.problems] == [TextNotUsed(why)]
    assert not held.recordings
    assert sum(isinstance(problem.reason, TextMightExist) for problem in held.problems) == len(TEXTS)


def test_a_text_of_a_person_comes_before_that_of_a_recogniser(tmp_path: Path) -> None:
    audio(tmp_path, "s1.wav")
    write(tmp_path, "s1.txt", TEXTS["s1"])
    heard = TEXTS["s1"].replace("ጥሩ", "ጡብ")
    segments = [{"start": 0.1, "end": 1.4, "text": heard}]
    write(tmp_path, "s1.json", json.dumps({"text": heard, "segments": segments}, ensure_ascii=False))
    write(tmp_path, "s1.vtt", f"WEBVTT\n\n00:00:00.100 --> 00:00:01.400\n{heard}\n")
    scan = scan_of(tmp_path, tmp_path)
    assert [text_of(recording) for recording in scan.recordings] == [TEXTS["s1"]]
    assert [cue.text for cue in scan.recordings[0].other] == [heard]
    assert {problem.path.name for problem in scan.problems} == {"s1.json", "s1.vtt"}
    assert all("ጥሩ" in str(problem.reason) and "ጡብ" in str(problem.reason) for problem in scan.problems)


def test_a_recording_is_not_transcribed_while_its_text_is_garbled(tmp_path: Path) -> None:
    audio(tmp_path, "s1.wav")
    write(tmp_path, "s1.txt", "??? ?? ????")
    held = hold_back(scan_of(tmp_path, tmp_path))
    assert not held.recordings
    assert "UTF-8" in str(held.problems[0].reason)


WITH_ITS_FIRST_WORD = ("ሰላም ለሁላችሁም ዛሬ", "ሰላም፣ ለሁላችሁም ዛሬ", "ሰላም, ለሁላችሁም ዛሬ", "ሰላም ለሁላችሁም\nሰላም ነው")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *itertools.product(("ሰላም", "s2", "notes"), WITH_ITS_FIRST_WORD),
        ("3", "3 ልጆች መጡ"),
        ("ሰላም", "S2: ለሁላችሁም ዛሬ"),  # who speaks
    ],
)
def test_a_transcript_keeps_its_first_word_when_a_recording_has_that_name(tmp_path: Path, name: str, text: str) -> None:
    recordings = ("ሰላም", "s2", "3")
    for other in recordings:
        audio(tmp_path, f"{other}.wav")
    write(tmp_path, f"{name}.txt", text)
    found = {recording.path.stem: recording.text for recording in scan_of(tmp_path, tmp_path).recordings}
    assert found == {other: " ".join(text.split()) if other == name else "" for other in recordings}


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (["clip_01"], "{}.wav {}"), (["clip_01"], "{} {}"), (["clip_01"], "{}: {}"), (["clip_01"], "{}|{}"),
        (["ሰላም", "አልማዝ"], "{} {}"),
    ],
)  # fmt: skip
def test_a_short_list_loses_its_names(tmp_path: Path, names: list[str], line: str) -> None:
    for name in (*names, "clip_02"):
        audio(tmp_path, f"{name}.wav")
    write(tmp_path, "list.txt", "\n".join(line.format(name, "ሰላም ነው") for name in names))
    assert [recording.text for recording in scan_of(tmp_path, tmp_path).recordings] == ["ሰላም ነው"] * len(names)


def test_columns_may_be_named_by_the_person(tmp_path: Path) -> None:
    clips(tmp_path)
    write(tmp_path, "list.csv", ["a;b;c", *lines("{name}.wav;falsch falsch falsch falsch;{text}")])
    scan = scan_of(tmp_path, tmp_path / "workspace", "audio=a,text=b")
    assert {recording.text for recording in scan.recordings} == {"falsch falsch falsch falsch"}
    assert {text_of(each) for each in scan_of(tmp_path, tmp_path).recordings} == set(TEXTS.values())


def test_columns_by_number_keep_the_first_line_of_a_list_without_header(tmp_path: Path) -> None:
    clips(tmp_path)
    write(tmp_path, "list.csv", lines("x;{name}.wav;7;{text}"))
    scan = scan_of(tmp_path, tmp_path / "workspace", "audio=2,text=4")
    assert {recording.text for recording in scan.recordings} == set(TEXTS.values())


def test_a_header_may_be_shorter_than_its_lines(tmp_path: Path) -> None:
    clips(tmp_path)
    write(tmp_path, "list.csv", ["nr;datei", *lines("7;{name}.wav;{text};almaz")])
    assert {text_of(each) for each in scan_of(tmp_path, tmp_path / "workspace").recordings} == set(TEXTS.values())


def rename_column(folder: Path) -> None:
    for path in folder.rglob("*.csv"):
        text = path.read_text(encoding="utf-8")
        path.write_text(
            text.replace("audio_file", "ፋይል").replace("text", "ጽሑፍ").replace("speaker_name", "ማን"), encoding="utf-8"
        )


def lose_a_recording(folder: Path) -> None:
    media = [
        path for path in sorted(folder.rglob("*")) if path.suffix in {".wav", ".flac", ".mp3", ".opus", ".mkv", ".mp4"}
    ]
    if media:
        media[0].unlink()


def recode(encoding: str, newline: str = "\n") -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                try:
                    text = path.read_bytes().decode("utf-8")
                except UnicodeDecodeError:
                    continue
                path.write_bytes(text.replace("\n", newline).encode(encoding))

    return change


def name_in_ethiopic(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), key=lambda path: -len(path.parts)):
        path.rename(path.with_name(path.name.replace("s1", "ሰላም").replace("talk", "ንግግር").replace("film", "ፊልም")))
