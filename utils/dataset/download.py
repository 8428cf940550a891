"""Recordings from the internet, with the captions of the asked language; needs the package ``yt-dlp``.

Captions made by people come first, then those that the site made from the spoken language itself. Captions in another
language, and translations of it into the asked one, do not say what is heard, and are never taken.
"""

import contextlib
import hashlib
import importlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.core.addresses import check_public, is_url, public_connections_only
from utils.core.errors import DownloadError, UnknownLanguageError
from utils.core.languages import canonical

__all__ = ["DownloadError", "Fetched", "fetch", "is_url", "quiet"]

logger = logging.getLogger(__name__)
FORMATS = ("vtt", "srt", "ass")  # of captions, the plainest first
DEEPEST = 3  # a channel is a list of lists
INSTALL = "Install it with: pip install yt-dlp. Or download the recording yourself and give the file."
ORIGINAL = "-orig"  # what a site adds to the spoken language, to tell it from its own translations

Tell = Callable[[str, float], None]
Info = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fetched:
    """What an address brought."""

    media: tuple[Path, ...] = ()
    subtitles: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()


def quiet(name: str, share: float) -> None:
    """Hear of progress and do nothing."""


def fetch(url: str, folder: Path, *, language: str, tell: Tell = quiet, allow_private: bool = False) -> Fetched:
    """Fetch the sound behind an address, or behind each entry of a list, and its captions.

    Args:
        url: A page that yt-dlp knows, or a media file.
        folder: Where the files go; what is there from an earlier call is not fetched again.
        language: What is spoken.
        tell: Hears the share of a file that has come.
        allow_private: Let it reach this machine and its network.
    """
    return _Fetcher(folder, canonical(language), tell, allow_private=allow_private).fetch(url, DEEPEST)


class _Fetcher:
    """What all addresses of one call share."""

    def __init__(self, folder: Path, language: str, tell: Tell, *, allow_private: bool) -> None:
        self.folder, self.language, self.tell, self.allow_private = folder, language, tell, allow_private

    def fetch(self, url: str, deeper: int) -> Fetched:
        """Fetch what lies behind one address; in a list, one bad entry does not stop the others."""
        check_public(url, allow_private=self.allow_private)
        with self._loader(url) as loader:
            info: Info = loader.extract_info(url, download=False)
            if "entries" not in info:
                return self._one(loader, info)
            entries = [entry for entry in info["entries"] if entry]
            here = [_attempt(self._one, loader, entry) for entry in entries if not _is_link(entry)]
        links = [str(entry["url"]) for entry in entries if _is_link(entry)]
        if links and not deeper:
            raise DownloadError(f"{url} is a list of lists of lists.", hint="Give the address of one list.")
        return _joined([*here, *(_attempt(self.fetch, link, deeper - 1) for link in links)])

    def _one(self, loader: Any, info: Info) -> Fetched:  # noqa: ANN401 - the package is optional
        """Fetch one recording, with its captions beside it."""
        title = str(info.get("title") or info.get("id"))
        if info.get("is_live"):
            raise DownloadError(f"{title} is a live broadcast without an end.", hint="Wait until it is a recording.")
        name = _captions(info, self.language)
        info["requested_subtitles"] = {name: _best(_offered(info)[name])} if name else {}
        loader.process_info(info)
        media = Path(str(info.get("filepath") or loader.prepare_filename(info)))
        if not media.is_file():
            raise DownloadError(f"{title} did not arrive whole.", hint="Try again: what has come is kept.")
        files = (Path(str(file["filepath"])) for file in info["requested_subtitles"].values() if file.get("filepath"))
        warnings = () if name else (f"{title} has no captions in the asked language ({self.language}).",)
        return Fetched((media,), tuple(file for file in files if file.is_file()), warnings)

    @contextlib.contextmanager
    def _loader(self, url: str) -> Iterator[Any]:
        try:
            yt_dlp = importlib.import_module("yt_dlp")
        except ModuleNotFoundError as error:
            raise DownloadError(f"{url} needs the package yt-dlp, which is not installed.", hint=INSTALL) from error
        with contextlib.nullcontext() if self.allow_private else public_connections_only():
            try:
                with yt_dlp.YoutubeDL(self._options(url)) as loader:
                    yield loader
            except yt_dlp.utils.YoutubeDLError as error:
                reason = str(error).removeprefix("ERROR: ").rstrip(".")
                raise DownloadError(f"{url} cannot be fetched: {reason}.", hint="Check the address.") from error

    def _options(self, url: str) -> Info:
        # The name begins with a hash of the address, because two sites may have files of one name.
        mark = hashlib.sha256(url.encode()).hexdigest()[:10]
        return {
            "format": "bestaudio/best",
            "outtmpl": {"default": f"{mark}-%(id).40B-%(title).60B.%(ext)s"},
            "paths": {"home": str(self.folder)},
            "windowsfilenames": True,
            "extract_flat": "in_playlist",
            "noplaylist": True,  # a video that is shown inside a list is meant alone
            "writesubtitles": True,
            "external_downloader": {"default": "native"},  # another program would pass our guard by
            "fixup": "never",  # what FFmpeg would mend, our decoder reads as it is
            "cachedir": False,
            "color": {"stdout": "never", "stderr": "never"},
            "noprogress": True,
            "quiet": True,
            "logger": logger,
            "progress_hooks": [self._hear],
        }

    def _hear(self, news: Mapping[str, Any]) -> None:
        total = news.get("total_bytes") or news.get("total_bytes_estimate")
        if total:
            self.tell(Path(str(news.get("filename", ""))).name, min(1.0, news.get("downloaded_bytes", 0) / total))


def _is_link(entry: Info) -> bool:
    return str(entry.get("_type", "")).startswith("url")


def _attempt(action: Callable[..., Fetched], *arguments: object) -> Fetched:
    try:
        return action(*arguments)
    except DownloadError as error:
        return Fetched(warnings=(str(error),))


def _joined(parts: Sequence[Fetched]) -> Fetched:
    return Fetched(
        tuple(path for part in parts for path in part.media),
        tuple(path for part in parts for path in part.subtitles),
        tuple(warning for part in parts for warning in part.warnings),
    )


def _captions(info: Info, language: str) -> str:
    """Choose captions: by people, else by the site from what is spoken; empty when there are none in the language."""
    by_people = [name for name in info.get("subtitles") or {} if _is(name, language)]
    by_site = [name for name in info.get("automatic_captions") or {} if _is(name.removesuffix(ORIGINAL), language)]
    if not _is(str(info.get("language") or ""), language):
        by_site = [name for name in by_site if name.endswith(ORIGINAL)]  # the others are translations
    return next(iter([*by_people, *sorted(by_site, key=lambda name: not name.endswith(ORIGINAL))]), "")


def _is(name: str, language: str) -> bool:
    try:
        return canonical(name) == language
    except UnknownLanguageError:
        return False


def _offered(info: Info) -> dict[str, list[Info]]:
    return {**(info.get("automatic_captions") or {}), **(info.get("subtitles") or {})}


def _best(files: Sequence[Info]) -> Info:
    known = [file for wanted in FORMATS for file in files if file.get("ext") == wanted]
    return (known or list(files))[0]
