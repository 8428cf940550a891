"""Download recordings from web addresses, with captions in the requested language; needs the package ``yt-dlp``.

Captions made by people are preferred to those that the site made by speech recognition. Captions in another language,
and machine translations, do not match the audio and are never used.
"""

import contextlib
import hashlib
import importlib
import io
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from utils.core.addresses import check_public, public_connections_only
from utils.core.errors import AmharicTtsError, DownloadError, UnknownLanguageError
from utils.core.facts import Fact
from utils.core.languages import canonical
from utils.dataset.errors import FetchError
from utils.dataset.facts import NoCaptions
from utils.dataset.sources import DIRECT, Access

logger = logging.getLogger(__name__)
CAPTION_FORMATS = ("vtt", "srt", "ass")  # in order of preference
MAX_DEPTH = 3  # a channel is a list of lists
ORIGINAL = "-orig"  # marks automatic captions of the spoken language, as opposed to translations

OnProgress = Callable[[str, float], None]
Info = dict[str, Any]


class DownloadedFiles(NamedTuple):
    """The files that came from an address."""

    media: tuple[Path, ...] = ()
    subtitles: tuple[Path, ...] = ()
    warnings: tuple[Fact | AmharicTtsError, ...] = ()


def download(
    url: str,
    folder: Path,
    *,
    language: str,
    on_progress: OnProgress = lambda _name, _share: None,
    access: Access = DIRECT,
) -> DownloadedFiles:
    """Download the audio of a page or of each entry of a playlist, and its captions in the spoken language.

    Files from an earlier call are not downloaded again. ``on_progress`` is called with the name of a file and the share
    that has arrived.
    """
    return _Downloader(folder, canonical(language), on_progress, access).download(url, MAX_DEPTH)


@dataclass(frozen=True)
class _Downloader:
    folder: Path
    language: str
    on_progress: OnProgress
    access: Access

    def download(self, url: str, depth: int) -> DownloadedFiles:
        """Download one address; one bad entry of a playlist does not stop the others."""
        check_public(url, self.access.proxy)
        with self._loader(url) as loader:
            info = loader.extract_info(url, download=False)
            if "entries" not in info:
                return self._download_one(loader, info)
            links = []
            parts = []
            for entry in filter(None, info["entries"]):
                if str(entry.get("_type", "")).startswith("url"):
                    links.append(str(entry["url"]))
                else:
                    parts.append(_attempt(self._download_one, loader, entry))
        if links and not depth:
            raise FetchError(url, "nested")
        parts += [_attempt(self.download, link, depth - 1) for link in links]
        return DownloadedFiles(*(sum(files, ()) for files in zip(*parts, strict=True))) if parts else DownloadedFiles()

    def _download_one(self, loader: Any, info: Info) -> DownloadedFiles:  # noqa: ANN401 - the package is optional
        title = str(info.get("title") or info.get("id"))
        if info.get("is_live"):
            raise FetchError(title, "live")
        name = choose_captions(info, self.language)
        info["requested_subtitles"] = {name: _best_format(info, name)} if name else {}
        loader.process_info(info)
        media = Path(str(info.get("filepath") or loader.prepare_filename(info)))
        if not media.is_file():
            raise FetchError(title, "partial")
        files = (Path(str(file["filepath"])) for file in info["requested_subtitles"].values() if file.get("filepath"))
        warnings = () if name else (NoCaptions(title, self.language),)
        return DownloadedFiles((media,), tuple(file for file in files if file.is_file()), warnings)

    @contextlib.contextmanager
    def _loader(self, url: str) -> Iterator[Any]:
        try:
            yt_dlp = importlib.import_module("yt_dlp")
        except ModuleNotFoundError as error:
            raise FetchError(url, "no_package") from error
        prefix = hashlib.sha256(url.encode()).hexdigest()[:10]  # two sites may have files of the same name
        options = {
            "format": "bestaudio/best",
            "outtmpl": {"default": f"{prefix}-%(id).40B-%(title).60B.%(ext)s"},
            "paths": {"home": str(self.folder)},
            "windowsfilenames": True,
            "extract_flat": "in_playlist",
            "noplaylist": True,  # of a video within a list, only the video
            "writesubtitles": True,
            # another program would bypass public_connections_only: yt-dlp leaves encrypted playlists to FFmpeg
            "external_downloader": {"default": "native"},
            "ffmpeg_location": str(self.folder / "no-ffmpeg"),  # does not exist
            "fixup": "never",  # our decoder reads files that FFmpeg would repair
            "cookiefile": io.StringIO(self._cookies()) if self.access.cookies else None,  # the file would be rewritten
            "proxy": self.access.proxy or None,
            "cachedir": False,
            "color": {"stdout": "never", "stderr": "never"},
            "noprogress": True,
            "quiet": True,
            "logger": logger,
            "progress_hooks": [self._report],
        }
        with public_connections_only(self.access.proxy):
            try:
                with yt_dlp.YoutubeDL(options) as loader:
                    yield loader
            except yt_dlp.utils.YoutubeDLError as error:
                reason = str(error).removeprefix("ERROR: ").rstrip(".")
                raise FetchError(url, "no_ffmpeg" if "ffmpeg" in reason else "failed", reason) from error

    def _cookies(self) -> str:
        try:
            return Path(self.access.cookies).read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise FetchError(self.access.cookies, "cookies", str(error)) from error

    def _report(self, status: Mapping[str, Any]) -> None:
        if total := status.get("total_bytes") or status.get("total_bytes_estimate"):
            share = min(1.0, status.get("downloaded_bytes", 0) / total)
            self.on_progress(Path(str(status.get("filename", ""))).name, share)


def _attempt(action: Callable[..., DownloadedFiles], *arguments: object) -> DownloadedFiles:
    try:
        return action(*arguments)
    except DownloadError as error:
        return DownloadedFiles(warnings=(error,))


def choose_captions(info: Info, language: str) -> str:
    """Return the name of the best captions; empty if there are none in the language."""
    by_people = [name for name in info.get("subtitles") or {} if _is_language(name, language)]
    automatic = info.get("automatic_captions") or {}
    by_site = [name for name in automatic if _is_language(name.removesuffix(ORIGINAL), language)]
    if not _is_language(str(info.get("language") or ""), language):
        by_site = [name for name in by_site if name.endswith(ORIGINAL)]  # the others are translations
    return next(iter([*by_people, *sorted(by_site, key=lambda name: not name.endswith(ORIGINAL))]), "")


def _best_format(info: Info, captions: str) -> Info:
    formats: list[Info] = (info.get("subtitles") or {}).get(captions) or info["automatic_captions"][captions]
    return next((file for wanted in CAPTION_FORMATS for file in formats if file.get("ext") == wanted), formats[0])


def _is_language(name: str, language: str) -> bool:
    try:
        return canonical(name) == language
    except UnknownLanguageError:
        return False
