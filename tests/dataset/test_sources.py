"""Recordings are found with their subtitles; what is not used is reported."""

import os
from pathlib import Path

import numpy as np
import pytest

from utils.core.errors import AudioError
from utils.dataset.clip import ScanResult
from utils.dataset.sources import find_recordings
from utils.media import audio
from utils.studio.uploads import preview

SRT = "1\n00:00:00,100 --> 00:00:00,900\n{}\n"
AMHARIC, ENGLISH = SRT.format("ሰላም ለሁላችሁ እንደምን ናችሁ ዛሬ ጥሩ ነው"), SRT.format("hello everybody, how are you")


def write_files(folder: Path, files: str) -> Path:
    """Make files by their names; what a subtitle says follows from the language in its name."""
    for number, name in enumerate(files.split(), start=1):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in {".wav", ".mp4", ".WAV", ".mkv"}:
            temporary = folder / "sound.wav"  # whatever the name ends in, the decoder looks inside
            audio.save(temporary, np.full(8000, number / 100, np.float32), 8000)
            temporary.rename(path)
        elif path.suffix.lower() == ".srt":
            path.write_text(ENGLISH if ".en" in name else AMHARIC, encoding="utf-8")
        else:
            text = f"WEBVTT\n\n{AMHARIC.replace(',', '.')}" if path.suffix == ".vtt" else "ሰላም ነው"
            path.write_text(text, encoding="utf-8")
    return folder


def cues_by_file(scan: ScanResult, folder: Path) -> dict[str, int]:
    root = folder.resolve()
    return {recording.path.relative_to(root).as_posix(): len(recording.cues) for recording in scan.recordings}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ("film.mp4 film.amh.vtt", {"film.mp4": 1}),
        ("film.mp4 film.am-orig.vtt", {"film.mp4": 1}),
        ("film.mp4 film.am.forced.srt", {"film.mp4": 1}),
        ("Film.MP4.mkv film.mp4.AM.SRT", {"Film.MP4.mkv": 1}),
        ("film.part.am.mp4 film.part.am.srt", {"film.part.am.mp4": 1}),
        ("a/film.mp4 b/film.mp4 a/film.srt", {"a/film.mp4": 1, "b/film.mp4": 0}),
        ("film.mp4 subtitles/film.am.srt", {"film.mp4": 1}),
        ("a/film.mp4 b/film.mp4 c/film.srt", {"a/film.mp4": 0, "b/film.mp4": 0}),
        ("a.wav b.WAV deep/er/c.mkv", {"a.wav": 0, "b.WAV": 0, "deep/er/c.mkv": 0}),
        (".hidden/a.wav ._b.wav c.wav", {"c.wav": 0}),
        ("film.mp4 film2.mp4 film2.am.srt", {"film.mp4": 0, "film2.mp4": 1}),
    ],
)
def test_subtitles_are_paired_by_name_without_language(tmp_path: Path, files: str, expected: dict[str, int]) -> None:
    assert cues_by_file(find_recordings([write_files(tmp_path, files)], language="am"), tmp_path) == expected


@pytest.mark.parametrize(("language", "text"), [("am", "ሰላም"), ("English", "hello")])
def test_subtitles_in_the_requested_language_are_read(tmp_path: Path, language: str, text: str) -> None:
    files = write_files(tmp_path, "film.mp4 film.en.srt film.am.srt")
    scan = find_recordings([files], language=language)
    (recording,) = scan.recordings
    assert recording.cues[0].text.startswith(text)
    assert ["another language" in str(problem.reason) for problem in scan.problems] == [True]


@pytest.mark.parametrize(("text", "warning"), [(ENGLISH, "Ethiopic"), (AMHARIC.replace("00:00:00", "01:00:00"), "1 h")])
def test_script_and_times_of_subtitles_are_checked(tmp_path: Path, text: str, warning: str) -> None:
    write_files(tmp_path, "film.mp4")
    (tmp_path / "film.srt").write_text(text, encoding="utf-8")
    (recording,) = find_recordings([tmp_path], language="am").recordings
    assert [(cue.span.start, cue.span.end) for cue in recording.cues] == [(0.1, 0.9)]
    assert [str(line).startswith("film.srt: ") and warning in str(line) for line in recording.warnings] == [True]


def test_turns_of_speakers_move_with_their_subtitles(tmp_path: Path) -> None:
    write_files(tmp_path, "film.mp4")
    turns = "1\n01:00:00,000 --> 01:00:00,400\nSARA: ሰላም\n\n2\n01:00:00,500 --> 01:00:00,900\nABEBE: ደህና\n"
    (tmp_path / "film.srt").write_text(turns, encoding="utf-8")
    (recording,) = find_recordings([tmp_path], language="am").recordings
    assert [(turn.span.start, turn.speaker) for turn in recording.turns] == [(0.0, "SARA"), (0.5, "ABEBE")]


@pytest.mark.parametrize(
    ("files", "speaker", "expected"),
    [
        ("sara/a.wav abebe/b.wav", "speaker", {"sara", "abebe"}),
        ("speaker1/a.wav speaker2/b.wav", "speaker", {"speaker1", "speaker2"}),
        ("train/a.wav test/b.wav", "speaker", {"speaker"}),
        ("disc1/a.wav disc2/b.wav", "speaker", {"speaker"}),
        ("sara/a.wav b.wav", "speaker", {"speaker"}),
        ("sara/a.wav abebe/b.wav", "ሣራ", {"ሣራ"}),
    ],
)
def test_folders_with_names_are_speakers(tmp_path: Path, files: str, speaker: str, expected: set[str]) -> None:
    scan = find_recordings([write_files(tmp_path, files)], language="am", speaker=speaker)
    assert {recording.speaker for recording in scan.recordings} == expected


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("film.mp4", {"film.mp4": 1}),
        ("film.am.srt", {"film.mp4": 1}),
        ("other.mp4 words.srt", {"other.mp4": 1}),
        (". film.mp4 link/film.mp4", {"film.mp4": 1, "other.mp4": 0}),
    ],
    ids=["brings its subtitles", "brings its recording", "two alone are a pair whatever their names", "used once"],
)
def test_a_named_file(tmp_path: Path, named: str, expected: dict[str, int]) -> None:
    write_files(tmp_path, "film.mp4 film.am.srt other.mp4 words.srt")
    (tmp_path / "link").symlink_to(tmp_path)
    scan = find_recordings([tmp_path / name for name in named.split()], language="am")
    assert cues_by_file(scan, tmp_path) == expected


def test_datasets_inside_a_folder_are_read_from_their_lists(tmp_path: Path) -> None:
    write_files(tmp_path, "talk.wav set/wavs/a.wav set/wavs/b.wav")
    (tmp_path / "set" / "metadata.csv").write_text("a|ሰላም\n", encoding="utf-8")
    scan = find_recordings([tmp_path], language="am")
    assert {recording.path.name: recording.text for recording in scan.recordings} == {"a.wav": "ሰላም", "talk.wav": ""}
    assert ["b.wav" in str(problem.reason) for problem in scan.problems] == [True]
    (recording,) = find_recordings([tmp_path / "set" / "metadata.csv"], language="am", speaker="አበበ").recordings
    assert (recording.text, recording.speaker) == ("ሰላም", "አበበ")


@pytest.mark.parametrize(
    ("files", "named", "fact"),
    [
        ("a.wav", "missing.wav", "No such file"),
        ("a.wav empty/readme.md", "empty", "No audio"),
        ("a.wav lost.am.srt b.wav", ".", "No recording has this name"),
        ("a.wav broken.parquet", "broken.parquet", "cannot be read as a table"),
        ("a.wav", "http://127.0.0.1/talk.mp3", "no folder for it"),
        ("a.wav", "hf:owner/name", "no folder for it"),
    ],
)
def test_only_what_cannot_be_used_is_left_out(tmp_path: Path, files: str, named: str, fact: str) -> None:
    write_files(tmp_path, files)
    bad = named if ":" in named else tmp_path / named
    scan = find_recordings([bad, tmp_path / "a.wav"], language="am")
    assert [fact in str(problem.reason) for problem in scan.problems] == [True]
    assert "a.wav" in {recording.path.name for recording in scan.recordings}


def test_what_is_no_file_is_reported_without_being_opened(tmp_path: Path) -> None:
    write_files(tmp_path, "a.wav")
    for name in ("b.wav", "a.srt", "metadata.csv", "t.parquet"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "zero.mp3").symlink_to("/dev/zero")
    scan = find_recordings([tmp_path, tmp_path / "metadata.csv", "/dev/zero"], language="am")
    assert cues_by_file(scan, tmp_path) == {"a.wav": 0}
    reported = {problem.path.name for problem in scan.problems if "pipe or a device" in str(problem.reason)}
    assert reported == {"b.wav", "a.srt", "metadata.csv", "t.parquet", "zero.mp3", "zero"}
    with pytest.raises(AudioError, match="pipe or a device"):
        audio.duration(tmp_path / "b.wav")


def test_broken_subtitles_or_audio_are_left_to_what_is_whole(tmp_path: Path) -> None:
    write_files(tmp_path, "a.wav")
    (tmp_path / "a.srt").write_text("nothing", encoding="utf-8")
    (tmp_path / "b.mp4").write_bytes(b"no sound")
    (tmp_path / "b.srt").write_text(AMHARIC, encoding="utf-8")
    scan = find_recordings([tmp_path], language="am")
    assert cues_by_file(scan, tmp_path) == {"a.wav": 0, "b.mp4": 1}
    assert "no timed cues" in str(scan.problems[0].reason)


def test_one_recording_and_one_text_belong_together_whatever_their_names(tmp_path: Path) -> None:
    files = write_files(tmp_path, "sermon.wav words.txt README.txt")
    pair = [files / "sermon.wav", files / "words.txt"]
    for inputs in ([files], pair):
        scan = find_recordings(inputs, language="am")
        assert [recording.text for recording in scan.recordings] == ["ሰላም ነው"]
        assert not scan.problems
    assert preview(str(files)).pairs[0].has_transcript
    write_files(tmp_path, "second.wav")
    several = find_recordings([*pair, files / "second.wav"], language="am")
    assert [recording.text for recording in several.recordings] == ["", ""]
    assert [problem.path.name for problem in several.problems] == ["words.txt"]
