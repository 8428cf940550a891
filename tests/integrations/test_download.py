"""Downloads bring audio and captions in the requested language, and never reach private addresses."""

import contextlib
import functools
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.local_server import Handler, listening
from utils.core.addresses import public_connections_only
from utils.core.errors import DownloadError
from utils.dataset.sources import Access, find_recordings
from utils.integrations.yt_dlp import DownloadedFiles, choose_captions, download
from utils.media import audio

pytestmark = pytest.mark.slow

VTT = "WEBVTT\n\n00:00.100 --> 00:00.900\n{}\n"


@pytest.fixture(scope="module")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="module")
def site(site_folder: Path) -> Iterator[str]:
    """A web site on this machine: a sound file, pages with a video and captions, a page that leads elsewhere."""
    folder = site_folder
    audio.save(folder / "talk.wav", np.zeros(8000, np.float32), 8000)
    (folder / "am.vtt").write_text(VTT.format("ሰላም ለሁላችሁ"), encoding="utf-8")
    (folder / "en.vtt").write_text(VTT.format("hello everybody"), encoding="utf-8")
    track = '<track kind="subtitles" srclang="{0}" src="/{0}.vtt">'
    page = '<html><head><title>{0}</title></head><body><video src="/talk.wav?{0}">{1}</video></body></html>'
    both = page.format("both", track.format("en") + track.format("am"))
    (folder / "both.html").write_text(both, encoding="utf-8")
    (folder / "english.html").write_text(page.format("english", track.format("en")), encoding="utf-8")
    with listening(functools.partial(SimpleHTTPRequestHandler, directory=str(folder))) as address:
        yield address


def downloaded(site: str, page: str, folder: Path, language: str = "am", **more: Any) -> DownloadedFiles:
    pytest.importorskip("yt_dlp", reason="the optional package yt-dlp is not installed")
    with pytest.MonkeyPatch.context() as patch:  # the site is on this machine
        patch.setattr("utils.integrations.yt_dlp.check_public", lambda *_: None)
        patch.setattr("utils.integrations.yt_dlp.public_connections_only", lambda _: contextlib.nullcontext())
        return download(f"{site}/{page}", folder, language=language, **more)


def test_a_media_file_is_downloaded_once(site: str, tmp_path: Path) -> None:
    reports: list[tuple[str, float]] = []
    first = downloaded(site, "talk.wav", tmp_path, on_progress=lambda *report: reports.append(report))
    (media,) = first.media
    assert audio.duration(media) == 1.0
    assert {name.removesuffix(".part") for name, _ in reports} == {media.name}
    assert reports[-1][1] == 1.0
    assert "no captions in am" in str(first.warnings[0])
    changed = media.stat().st_mtime_ns
    assert downloaded(site, "talk.wav", tmp_path) == first
    assert media.stat().st_mtime_ns == changed


@pytest.mark.parametrize(
    ("page", "language", "text"),
    [
        ("both.html", "am", "ሰላም ለሁላችሁ"),
        ("both.html", "English", "hello everybody"),
        ("english.html", "am", ""),
        ("both.html", "fr", ""),
    ],
)
def test_captions_come_in_the_requested_language_only(
    site: str, tmp_path: Path, page: str, language: str, text: str
) -> None:
    files = downloaded(site, page, tmp_path, language)
    assert len(files.media) == 1
    assert bool(files.warnings) == (not text)
    (recording,) = find_recordings([*files.media, *files.subtitles], language=language).recordings
    assert [cue.text for cue in recording.cues] == ([text] if text else [])


def test_neither_an_address_nor_a_redirect_leads_to_a_private_network(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for url in ("file:///etc/passwd", "http://[::1"):
        with pytest.raises(DownloadError, match="must start with http"):
            download(url, tmp_path, language="am")
    with pytest.raises(DownloadError, match="private network"):
        download(f"{site}/talk.wav", tmp_path, language="am")
    pytest.importorskip("yt_dlp", reason="the optional package yt-dlp is not installed")
    monkeypatch.setattr("utils.integrations.yt_dlp.check_public", lambda *_: None)  # as before a redirect
    with pytest.raises(DownloadError, match="private network"):
        download(f"{site}/talk.wav", tmp_path, language="am")


def test_cookies_are_used_without_a_change_of_their_file(site: str, tmp_path: Path) -> None:
    cookies = tmp_path / "cookies.txt"
    line = "127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\tabebe"
    cookies.write_text(f"# Netscape HTTP Cookie File\n{line}\n")
    before = cookies.read_text()
    seen: list[tuple[str, str | None]] = []

    class Proxy(Handler):
        def do_GET(self) -> None:  # noqa: N802  # as http.server calls it
            seen.append((self.path, self.headers.get("Cookie")))
            self.answer_with(404, b"", {})

    with listening(Proxy) as proxy, pytest.raises(DownloadError):
        downloaded(site, "talk.wav", tmp_path / "out", access=Access(str(cookies), proxy))
    assert (f"{site}/talk.wav", "session=abebe") in seen
    assert cookies.read_text() == before
    with pytest.raises(DownloadError, match="cannot be read"):
        downloaded(site, "talk.wav", tmp_path / "out", access=Access(cookies="/no/such/file"))


def test_an_encrypted_playlist_is_not_left_to_ffmpeg(
    site: str, site_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-KEY:METHOD={},URI="/talk.wav"\n#EXTINF:1,\n/talk.wav\n'
    ffmpeg = tmp_path / "bin" / "ffmpeg"
    ffmpeg.parent.mkdir()
    ffmpeg.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/called\necho ffmpeg version 8\n')
    ffmpeg.chmod(0o755)
    monkeypatch.setenv("PATH", str(ffmpeg.parent), prepend=os.pathsep)
    for method in ("AES-128", "SAMPLE-AES"):
        (site_folder / "list.m3u8").write_text(lines.format(method) + "#EXT-X-ENDLIST\n")
        with pytest.raises(DownloadError, match="ffmpeg") as caught:
            downloaded(site, "list.m3u8", tmp_path / method)
        assert "add the file" in caught.value.hint
    assert site not in (tmp_path / "called").read_text()


def test_the_guard_applies_to_its_own_thread_only(site: str) -> None:
    def connect() -> None:
        with socket.create_connection(("localhost", int(site.rpartition(":")[2])), timeout=5):
            pass

    with public_connections_only(), ThreadPoolExecutor(1) as other:
        with pytest.raises(OSError, match="private network"):
            connect()
        other.submit(connect).result()
    connect()


@pytest.mark.parametrize(
    ("info", "name"),
    [
        ({"subtitles": {"en": [], "am": []}}, "am"),
        ({"subtitles": {"am-ET": []}, "automatic_captions": {"am-orig": [], "am": []}}, "am-ET"),
        ({"automatic_captions": {"am": [], "am-orig": [], "en": []}}, "am-orig"),
        ({"automatic_captions": {"am": [], "en-orig": []}}, ""),
        ({"automatic_captions": {"am": []}, "language": "am"}, "am"),
        ({"automatic_captions": {"am": []}, "language": "en"}, ""),
        ({"subtitles": {"en": [], "live_chat": []}}, ""),
        ({}, ""),
    ],
)
def test_captions_by_people_are_preferred(info: dict[str, Any], name: str) -> None:
    assert choose_captions(info, "am") == name
