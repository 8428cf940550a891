"""Fetching single files of the published model: resumed where a download broke off, and checked before use.

``huggingface_hub`` throws away what a killed download has fetched; with files of two gigabytes that hurts. Its
``http_get`` can go on from a position, so the half file is kept here, under a name that holds its hash.
"""

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from utils.core.errors import DownloadError
from utils.core.storage import PARTIAL, retry_while_in_use, storage_error

REPOSITORY = "coqui/XTTS-v2"
OnBytes = Callable[[int], None]  # takes how many bytes of the file are there
SHA256, GIT = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{40}")
BLOCK = 1 << 22


class UnreachableError(DownloadError):
    """The hub does not answer, or answers with a fault."""


@dataclass(frozen=True)
class HubFile:
    """One file as the hub describes it.

    Attributes:
        name: File name.
        address: Where it is.
        size: Length in bytes; 0 when the hub does not say.
        etag: Its SHA-256, or for small files the hash that git gives it.
    """

    name: str
    address: str
    size: int
    etag: str

    def is_intact(self, path: Path) -> bool:
        """Tell whether a file has the published size and hash."""
        if not path.is_file() or (self.size and path.stat().st_size != self.size):
            return False
        if SHA256.fullmatch(self.etag):
            return _digest(path, "sha256") == self.etag
        if GIT.fullmatch(self.etag):
            return _digest(path, "sha1", f"blob {path.stat().st_size}\0".encode()) == self.etag
        return True


def file_info(name: str, revision: str, endpoint: str | None = None) -> HubFile | None:
    """Ask the hub for a file's size and hash; None when this revision has no such file.

    Args:
        name: File name.
        revision: Branch, tag or commit.
        endpoint: Address of the hub; None: the one of HF_ENDPOINT, or the public one.
    """
    from httpx2 import RemoteProtocolError
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError

    address = hf_hub_url(REPOSITORY, name, revision=revision, endpoint=endpoint)
    with _reaching(f"{REPOSITORY} {revision} {name}"):
        try:
            try:
                found = get_hf_file_metadata(address, endpoint=endpoint)
            except RemoteProtocolError:  # the hub closed the connection of an earlier question just now
                found = get_hf_file_metadata(address, endpoint=endpoint)
        except EntryNotFoundError:
            return None
    return HubFile(name, address, found.size or 0, found.etag or "")


def download(file: HubFile, folder: Path, on_bytes: OnBytes) -> Path:
    """Download a file into a folder; what an earlier try left is continued, and a wrong hash is not kept."""
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    path = folder / file.name
    half = folder / f".{file.name}.{file.etag[:16] or 'unnamed'}{PARTIAL}"
    try:
        with half.open("ab") as target, _reaching(f"{REPOSITORY} {file.name}"):
            begun = target.tell()
            meter = lambda **_: _Meter(begun, on_bytes)  # noqa: E731  http_get makes its own bar from a class
            http_get(
                file.address,
                target,
                resume_size=begun,
                headers=build_hf_headers(),
                expected_size=file.size or None,
                displayed_filename=file.name,
                tqdm_class=meter,  # type: ignore[arg-type]
            )
        if not file.is_intact(half):
            half.unlink()
            raise DownloadError(
                f"{file.name} of {REPOSITORY} arrived with another content than the hub announces.",
                hint="Start again; if it happens twice, a proxy on the way changes downloads: try another network.",
            )
        retry_while_in_use(lambda: half.replace(path))
    except OSError as error:
        raise storage_error(path, error) from error
    return path


class _Meter:
    """Counts bytes where ``http_get`` expects a progress bar."""

    def __init__(self, begun: int, on_bytes: OnBytes) -> None:
        self.done, self.on_bytes = begun, on_bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def update(self, count: int) -> None:
        self.done += count
        self.on_bytes(self.done)


@contextlib.contextmanager
def _reaching(what: str) -> Iterator[None]:
    """Say in one sentence why the hub could not be used."""
    from httpx2 import HTTPError, InvalidURL

    try:
        yield
    except (HTTPError, InvalidURL, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk, not the network
            raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise UnreachableError(
            f"{what} could not be fetched: {reason}.",
            hint="Connect to the internet and start again; what has arrived is kept.",
        ) from error


def _digest(path: Path, kind: str, prefix: bytes = b"") -> str:
    digest = hashlib.new(kind, prefix, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
