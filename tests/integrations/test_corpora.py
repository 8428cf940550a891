"""Published corpora, as miniature copies in the layout of each behind a hub and a web site on this machine."""

import contextlib
import functools
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pyarrow as pa
import pytest
import soundfile
from huggingface_hub import HfApi
from pyarrow import parquet

from tests.dataset.layouts import tar
from tests.local_server import Handler, listening
from tests.xtts.hub_server import etag
from utils.cli.prepare import work
from utils.config import DatasetConfig
from utils.core.errors import DownloadError
from utils.dataset.sources import used_corpora
from utils.dataset.store import load_dataset
from utils.integrations import corpora
from utils.integrations.corpora import Corpus, note_corpus, read_corpus
from utils.studio import runs
from utils.studio.job import Job
from utils.studio.paths import Project

Files = dict[str, bytes]


def wav(number: int, rate: int = 24_000) -> bytes:
    file = io.BytesIO()
    tone = np.sin(np.arange(rate) / (5 + number)) * 0.1
    soundfile.write(file, tone.astype(np.float32), rate, format="WAV")
    return file.getvalue()


def table(rows: list[dict[str, object]]) -> bytes:
    file = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


def clip(number: int, **columns: object) -> dict[str, object]:
    return {"audio": {"bytes": wav(number, 16_000), "path": f"{number}.wav"}, **columns}


WAXAL_CARD = """---
license: [cc-by-4.0]
configs:
- config_name: amh_asr
  data_files:
  - {split: train, path: "data/ASR/amh/amh-train-*"}
---
"""
FLEURS_LINE = "7\t1.wav\tሰላም ነው።\tሰላም ነው\tሰ ላ ም |\t16000\tFEMALE\n"
REPOSITORIES: dict[str, dict[str, Files]] = {  # files by revision
    "snapwre/amharic-speech": {
        "main": {
            f"data/{split}-00000.parquet": table(
                [
                    {"audio": {"bytes": wav(first + n), "path": None}, "text": f"ሰላም {first + n}", "speaker_id": "s1"}
                    for n in range(4)
                ]
            )
            for first, split in ((10, "test"), (0, "train"))
        }
    },
    "google/WaxalNLP": {
        "main": {
            "README.md": WAXAL_CARD.encode(),
            "data/ASR/amh/amh-train-0.parquet": table([clip(1, transcription="ሰላም ነው", speaker_id="w7")]),
            "data/ASR/swa/swa-train-0.parquet": table([clip(2, transcription="habari", speaker_id="w8")]),
        }
    },
    "DigitalUmuganda/Afrivoice_Ethiopia": {"main": {"data/train.parquet": b""}},
    "gheero-Leyu/leyu-amharic-gondar": {
        "main": {
            "metadata.jsonl": b'{"file_name": "wavs/1.wav", "sentence": "selam", "speaker_id": "g"}',
            "wavs/1.wav": wav(3),
        }
    },
    "google/fleurs": {
        "main": {
            "fleurs.py": b"",
            "data/am_et/train.tsv": FLEURS_LINE.encode(),
            "data/am_et/audio/train.tar.gz": tar({"train/1.wav": wav(4, 16_000)}),
            "data/sw_ke/train.tsv": b"1\t2.wav\thabari\thabari\th\t1\tMALE\n",
        }
    },
    "mozilla-foundation/common_voice_17_0": {
        "main": {"common_voice_17_0.py": b""},
        corpora.CONVERTED: {
            "am/train/0000.parquet": table([clip(5, client_id="c5", sentence="ሰላም ነው", up_votes=2)]),
            "sw/train/0000.parquet": table([clip(6, client_id="c6", sentence="habari", up_votes=2)]),
        },
    },
}
KALDI = {
    "data_readspeech_am/data/train/text": "tr_1 ሰላም ነው\ntr_2 ደህና\n".encode(),
    "data_readspeech_am/data/train/wav.scp": b"tr_1 /home/somebody/tr_1.wav\n",
    "data_readspeech_am/data/train/utt2spk": b"tr_1 spk_3\n",
    "data_readspeech_am/data/train/wav/tr_1.wav": wav(8, 16_000),
}


@dataclass
class Site:
    """What was requested of the hub, and how often the archive is cut off."""

    address: str = ""
    requests: list[str] = field(default_factory=list)
    cut_off: int = 0


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:  # noqa: C901  # all that a hub answers
    site, archive = Site(), tar(KALDI, "bz2")

    class Hub(Handler):
        def do_HEAD(self) -> None:  # noqa: N802  # as http.server calls it
            self.answer(has_body=False)

        def do_GET(self) -> None:  # noqa: N802  # as http.server calls it
            site.requests.append(self.path)
            self.answer(has_body=True)

        def answer(self, *, has_body: bool) -> None:
            path = urlsplit(self.path).path
            if path == "/archive.tar.bz2":
                self.send_archive()
            elif path == "/api/datasets":
                author = parse_qs(urlsplit(self.path).query)["author"][0]
                self.send_json([{"id": name} for name in REPOSITORIES if name.startswith(f"{author}/")])
            elif path.startswith("/api/"):
                name, _, revision = path.removeprefix("/api/datasets/").partition("/tree/")
                files = REPOSITORIES[name].get(revision.replace("%2F", "/"))
                listed = [{"type": "file", "path": file, "size": 1, "oid": "0"} for file in files or {}]
                self.send_json(listed) if files is not None else self.refuse(404, "RevisionNotFound")
            else:
                name, _, rest = path.removeprefix("/datasets/").partition("/resolve/")
                rest = rest.replace("%2F", "/")
                if name.startswith("DigitalUmuganda"):
                    self.refuse(403, "GatedRepo")
                    return
                found = [
                    content
                    for revision, files in REPOSITORIES[name].items()
                    for file, content in files.items()
                    if rest == f"{revision}/{file}"
                ]
                if not found:
                    self.refuse(404, "EntryNotFound")
                    return
                headers = {"ETag": f'"{etag(found[0])}"', "X-Repo-Commit": "0" * 40}
                self.answer_with(200, found[0], headers, has_body=has_body)

        def send_json(self, value: object) -> None:
            self.answer_with(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

        def refuse(self, status: int, code: str) -> None:
            self.answer_with(status, b"", {"X-Error-Code": code})

        def send_archive(self) -> None:
            first = int(self.headers.get("Range", "bytes=0-")[6:].partition("-")[0])
            if first >= len(archive):
                self.answer_with(416, b"", {"Content-Range": f"bytes */{len(archive)}"})
                return
            self.send_response(206 if first else 200)
            self.send_header("Content-Length", str(len(archive) - first))
            self.end_headers()
            end = len(archive) // 2 if site.cut_off else len(archive)
            site.cut_off -= bool(site.cut_off)
            self.wfile.write(archive[first:end])
            self.close_connection = True

    with listening(Hub) as site.address:
        monkeypatch.setattr("huggingface_hub.HfApi", functools.partial(HfApi, endpoint=site.address))
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
        here = Corpus(f"{site.address}/archive.tar.bz2", "ALFFA", "20 h", "open")
        monkeypatch.setitem(corpora.published_corpora(), "openslr25", here)
        monkeypatch.setattr(corpora, "check_public", lambda _: None)
        monkeypatch.setattr(corpora, "public_connections_only", contextlib.nullcontext)
        yield site


@pytest.mark.parametrize(
    ("settings", "text", "speaker"),
    [
        ({"corpus": "amharic-speech", "hours": 0.0001}, "ሰላም 0", "s1"),
        ({"corpus": "waxal"}, "ሰላም ነው", "w7"),
        ({"corpus": "leyu"}, "selam", "g"),
        ({"corpus": "fleurs"}, "ሰላም ነው።", "አበበ"),
        ({"corpus": "common-voice"}, "ሰላም ነው", "c5"),
        ({"corpus": "openslr25"}, "ሰላም ነው", "spk_3"),
        ({"inputs": "hf:google/WaxalNLP:amh_asr"}, "ሰላም ነው", "w7"),
    ],
)
def test_every_corpus_is_prepared_in_one_step(
    site: Site, tmp_path: Path, settings: dict[str, Any], text: str, speaker: str
) -> None:
    config = DatasetConfig(speaker="አበበ", segmenter="energy", workers=1, min_snr_db=-20, **settings)
    project = Project(tmp_path / "project")
    with Job(runs.create("prepare", config, project)) as job:
        work(job, config)
    contents = load_dataset(project.dataset)
    assert {(clip.text, clip.speaker) for clip in contents.clips.values()} == {(text, speaker)}


def test_no_more_hours_are_downloaded_than_asked_for(site: Site, tmp_path: Path) -> None:
    few = read_corpus("corpus:amharic-speech", tmp_path / "recordings", hours=2.5 / 3600).recordings
    assert [recording.text for recording in few] == ["ሰላም 0", "ሰላም 1", "ሰላም 2"]
    assert not [path for path in site.requests if "test-00000" in path]
    assert len(read_corpus("corpus:amharic-speech", tmp_path / "recordings").recordings) == 8
    assert len([path for path in site.requests if path.endswith("train-00000.parquet")]) == 1  # it was in the cache


def test_a_download_that_was_cut_off_resumes(site: Site, tmp_path: Path) -> None:
    site.cut_off = 1
    with pytest.raises(DownloadError, match="resumes"):
        read_corpus("corpus:openslr25", tmp_path)
    scan = read_corpus("corpus:openslr25", tmp_path)
    assert len(scan.recordings) == 1
    assert "no such audio file: tr_2" in str(scan.problems[0].reason)
    before = len(site.requests)
    assert len(read_corpus("corpus:openslr25", tmp_path).recordings) == 1
    assert len(site.requests) == before


def test_a_download_begins_again_where_the_file_has_become_shorter(site: Site, tmp_path: Path) -> None:
    part = tmp_path / "archive-tar-bz2" / ".archive.tar.bz2.part"
    part.parent.mkdir()
    part.write_bytes(bytes(100_000))
    assert len(read_corpus("corpus:openslr25", tmp_path).recordings) == 1
    assert site.requests == ["/archive.tar.bz2"] * 2


def test_a_complete_part_is_not_downloaded_again(site: Site, tmp_path: Path) -> None:
    read_corpus("corpus:openslr25", tmp_path)
    folder = tmp_path / "archive-tar-bz2"
    (folder / ".archive.tar.bz2").rename(folder / ".archive.tar.bz2.part")
    assert len(read_corpus("corpus:openslr25", tmp_path).recordings) == 1
    assert site.requests == ["/archive.tar.bz2"] * 2  # the second one asks for what follows the last byte


def test_a_gate_and_an_unknown_name_are_explained(site: Site, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="hf auth login"):
        read_corpus("corpus:afrivoice", tmp_path)
    with pytest.raises(DownloadError, match="fleurs"):
        read_corpus("corpus:fluers", tmp_path)


def test_without_a_connection_the_download_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.HfApi", functools.partial(HfApi, endpoint="http://127.0.0.1:9"))  # nobody
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)  # between its attempts
    with pytest.raises(DownloadError, match="cannot be downloaded"):
        read_corpus("corpus:fleurs", tmp_path)


def test_the_corpora_of_a_dataset_are_remembered_with_their_licences(site: Site, tmp_path: Path) -> None:
    assert note_corpus("corpus:fleurs", tmp_path).licence == "CC-BY-4.0"
    assert note_corpus("hf:google/WaxalNLP:amh_asr", tmp_path).licence == "cc-by-4.0"
    assert {source: about[2] for source, about in used_corpora(tmp_path).items()} == {
        "hf:google/fleurs:am_et": "CC-BY-4.0",
        "hf:google/WaxalNLP:amh_asr": "cc-by-4.0",
    }
