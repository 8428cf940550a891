"""Existing datasets are read completely, and never lead out of their folder."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from utils.dataset.clip import ScanResult
from utils.dataset.readers.facts import TextRepaired
from utils.dataset.sources import find_recordings
from utils.media import audio


def read_dataset(path: Path, workspace: Path | None = None) -> ScanResult:
    return find_recordings([path], language="am", workspace=workspace)


HEADER = "audio_file|text|speaker_name\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with wavs/a.wav, wavs/b.wav, wavs/c.wav, and a file outside of it."""
    (tmp_path / "set" / "wavs").mkdir(parents=True)
    for size, path in enumerate(("outside.wav", "set/wavs/a.wav", "set/wavs/b.wav", "set/wavs/c.wav"), start=800):
        audio.save(tmp_path / path, np.linspace(-0.1, 0.1, size, dtype=np.float32), 8000)
    return tmp_path / "set"


def listed(folder: Path, text: str | bytes, name: str = "metadata.csv") -> ScanResult:
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return read_dataset(folder / name)


def rows(scan: ScanResult) -> list[tuple[str, str, str]]:
    return [(recording.path.name, recording.text, recording.speaker) for recording in scan.recordings]


AB = [("a.wav", "ሰላም ነው", "speaker"), ("b.wav", "ደህና ነኝ", "speaker")]
AB_ABEBE = [(name, text, "አበበ") for name, text, _ in AB]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a|ሰላም ነው\nb|ደህና ነኝ\n", AB),
        ("a|ሰላም 1|ሰላም ነው\nb|ደህና ነኝ|\n", AB),  # LJSpeech: the spoken text, else the written one
        ("a|1 2 3|ሰላም ነው ወይ እንዴት\n", [("a.wav", "ሰላም ነው ወይ እንዴት", "speaker")]),  # LJSpeech, one line
        (HEADER + "wavs/a.wav|ሰላም ነው|አበበ\nwavs/b.wav|ደህና ነኝ|አበበ\n", AB_ABEBE),
        ("wavs/a.wav|ሰላም ነው|አበበ\nwavs/b.wav|ደህና ነኝ|አበበ\n", AB_ABEBE),
        ("wavs\\a.wav|ሰላም ነው|አበበ\nwavs\\b.wav|ደህና ነኝ|አበበ\n", AB_ABEBE),
        ("wavs/a.wav,ሰላም ነው", AB[:1]),
        ('path,sentence\nA.WAV,"ሰላም ነው"\nb.wav,"ደህና\nነኝ"\n', AB),  # quoted, a line break inside
        ("client_id\tpath\tsentence\nአበበ\ta.wav\tሰላም ነው\nአበበ\tb\tደህና ነኝ\n", AB_ABEBE),
        ("file_name;text\na.wav;ሰላም ነው\nb.wav;ደህና ነኝ\n", AB),
        ('a|"ሰላም ""ነው"""\n', [("a.wav", 'ሰላም "ነው"', "speaker")]),  # quoted by a program
        ('a|"ሰላም" አለ "ነው"\n', [("a.wav", '"ሰላም" አለ "ነው"', "speaker")]),  # marks of the text
        ("a|ሰላም፣ ነው, ወይ; አዎ\n", [("a.wav", "ሰላም፣ ነው, ወይ; አዎ", "speaker")]),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "crlf", "mojibake"])
def test_every_format_of_a_list_is_read(
    folder: Path, text: str, expected: list[tuple[str, str, str]], encoding: str
) -> None:
    text = {"crlf": text.replace("\n", "\r\n"), "mojibake": text.encode().decode("latin-1")}.get(encoding, text)
    scan = listed(folder, text.encode("utf-16" if encoding == "utf-16" else "utf-8"))
    assert rows(scan) == expected
    assert [problem for problem in scan.problems if "decoded" not in str(problem.reason)] == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("x|ደህና", "line 2: no such audio file: x"),
        ("../outside.wav|ደህና", "line 2: ../outside.wav is outside"),
        ("/etc/passwd|ደህና", "line 2: /etc/passwd is outside"),
        ("b|ደህና|x|y\nc|አዎ", "line 2: 4/2 cells"),
        ("a|ሰላም ነው", "1 repeated"),
        ("a|ደህና", "differ"),
    ],
)
def test_an_unusable_line_is_reported_with_its_number(folder: Path, line: str, problem: str) -> None:
    scan = listed(folder, f"a|ሰላም ነው\n{line}\n")
    assert [recording.path.name for recording in scan.recordings] == ["a.wav", "c.wav"][: 1 + line.count("\n")]
    assert [problem in str(reported.reason) for reported in scan.problems] == [True]


def test_a_list_names_links_as_a_snapshot_of_the_hub_has_them(folder: Path) -> None:
    blob = folder.parent / "blobs" / "5f3c"
    blob.parent.mkdir()
    (folder / "wavs" / "a.wav").rename(blob)
    (folder / "wavs" / "a.wav").symlink_to(blob)
    scan = listed(folder, "file_name,transcription\nwavs/a.wav,ሰላም ነው\n")
    assert rows(scan) == AB[:1]


def test_linked_folders_are_read_once(folder: Path) -> None:
    (folder / "wavs").rename(folder.parent / "disk")
    (folder / "wavs").symlink_to(folder.parent / "disk")
    (folder.parent / "disk" / "again").symlink_to(folder)
    scan = listed(folder, "file_name,transcription\nwavs/a.wav,ሰላም ነው\n")
    assert rows(scan) == AB[:1]


def test_damaged_text_is_reported(folder: Path) -> None:
    scan = listed(folder, b"a|\xff\xe1\x88\xb0\xe1\x88\x8b\xe1\x88\x9d\n")
    assert TextRepaired("metadata.csv", "lost", 1, "UTF-8") in scan.notes  # it is used all the same
    scan = listed(folder, 'path,text\na,ሰላም\nb,"ደህና\nc,አዎ\n')
    assert [recording.path.name for recording in scan.recordings] == ["a.wav", "c.wav"]
    assert [str(problem.reason) for problem in scan.problems] == ["line 3: a quotation mark is not closed."]


@pytest.mark.parametrize("kind", ["parquet", "stream.arrow", "file.arrow"])
@pytest.mark.parametrize("inside", [True, False])
def test_a_table_is_read_with_audio_inside_or_beside(folder: Path, tmp_path: Path, kind: str, inside: bool) -> None:
    table(folder / "data" / f"train.{kind}", folder, inside=inside)
    scan = read_dataset(folder / "data", tmp_path / "fetched")
    assert [(recording.text, recording.speaker) for recording in scan.recordings] == [("ሰላም", "1"), ("", "2")]
    assert scan.recordings[0].path.read_bytes() == (folder / "wavs" / "a.wav").read_bytes()
    reasons = [str(problem.reason) for problem in scan.problems]
    assert ["line 3: no audio file" in reasons[0], "line 2: no text is given" in reasons[1]] == [True, True]
    assert ["c.wav" in reason for reason in reasons[2:]] == [True] * (not inside)
    assert read_dataset(folder / "data", tmp_path / "fetched") == scan


def table(path: Path, folder: Path, *, inside: bool) -> None:
    """Write a table of two sounds and a row without one; their files move beside it unless they are inside."""
    path.parent.mkdir()
    sounds = [
        {"bytes": wav.read_bytes(), "path": f"../wavs/{wav.name}"} if inside else {"bytes": None, "path": wav.name}
        for wav in (folder / "wavs" / "a.wav", folder / "wavs" / "b.wav")
    ]
    if not inside:
        (folder / "wavs").rename(path.parent / "wavs")
        (folder / "wavs").symlink_to(path.parent / "wavs")
    rows = pa.table({"audio": [*sounds, None], "sentence": ["ሰላም", None, "አዎ"], "speaker_id": [1, 2, 3]})
    if path.suffix == ".parquet":
        parquet.write_table(rows, path)
        return
    with (ipc.new_stream if path.stem.endswith("stream") else ipc.new_file)(path, rows.schema) as sink:
        sink.write_table(rows)


def test_what_is_no_table_or_no_list_of_sounds_is_refused(folder: Path, tmp_path: Path) -> None:
    table(folder / "data" / "train.parquet", folder, inside=True)
    assert "unpacked" in str(read_dataset(folder).problems[0].reason)  # without a workspace
    parquet.write_table(pa.table({"x": [1], "y": [2]}), tmp_path / "other.parquet")
    (unknown,) = read_dataset(tmp_path / "other.parquet").problems
    assert "has no columns of audio and text (x, y)" in str(unknown.reason)
    (broken,) = listed(folder, b"PAR1 no table at all", "broken.parquet").problems
    assert "cannot be read as a table" in str(broken.reason)
    (words,) = listed(folder, "only one cell\nand another\n", "words.csv").problems
    assert "layout is not known" in str(words.reason)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("metadata.jsonl", '{"file_name": "wavs/a.wav", "text": "ሰላም ነው", "speaker_id": "አበበ"}'),
        ("manifest.json", '{"audio_filepath": "wavs/a.wav", "duration": 0.1, "text": "ሰላም ነው", "speaker": "አበበ"}'),
        ("clips.jsonl", '{"audio": {"path": "a.wav"}, "sentence": "ሰላም ነው", "client_id": "አበበ"}'),
    ],
)
def test_a_manifest_of_json_lines_is_read(folder: Path, name: str, line: str) -> None:
    (folder / name).write_text(f'{line}\nnot json\n[1]\n{{"text": "ሰላም"}}\n{"[" * 99_999}', encoding="utf-8")
    scan = read_dataset(folder)
    assert rows(scan) == AB_ABEBE[:1]
    reasons = " ".join(str(problem.reason) for problem in scan.problems)
    assert sum(f"line {number}: not an object" in reasons for number in (2, 3, 5)) == 3
    assert "line 4: no audio file is given" in reasons


def test_of_several_lists_metadata_csv_is_used(folder: Path) -> None:
    (folder / "metadata.csv").write_text("a|ሰላም ነው\n", encoding="utf-8")
    (folder / "metadata_old.csv").write_text("a|ሌላ\nb|ደህና ነኝ\n", encoding="utf-8")
    scan = read_dataset(folder)
    assert rows(scan) == AB[:1]
    assert "metadata.csv is used instead" in str(scan.problems[0].reason)
    assert len(rows(read_dataset(folder / "metadata_old.csv"))) == 2
