"""The published model on the Hugging Face Hub: consent to its licence, and downloads, resumable and verified.

``huggingface_hub`` discards the partial file of a killed download. Its ``http_get`` can resume, so the partial file is
kept here, under a name with its hash.
"""

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

from utils.core.errors import first_line
from utils.core.storage import PARTIAL, make_folder, read_object, retry_while_in_use, storage_errors, write_document
from utils.xtts.facts import LicenceError, UnreachableError, WrongHashError

REPOSITORY = "coqui/XTTS-v2"
LICENCE = "Coqui Public Model License 1.0.0"
VARIABLE = "COQUI_TOS_AGREED"  # the same as in coqui-tts
SHA256 = re.compile(r"[0-9a-f]{64}")
GIT_SHA1 = re.compile(r"[0-9a-f]{40}")

OnBytes = Callable[[int], object]  # called with the bytes downloaded so far


def accept_licence(path: Path, name: str) -> None:
    """Store the consent to the licence, with the name of who gave it, if known."""
    make_folder(path.parent)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    write_document(path, {"licence": LICENCE, "accepted_by": name, "at": now})


def licence_accepted(path: Path) -> bool:
    """Return whether consent is stored, or given by the environment variable of coqui-tts."""
    return os.environ.get(VARIABLE) == "1" or read_object(path).get("licence") == LICENCE


def require_licence(path: Path) -> None:
    if not licence_accepted(path):
        raise LicenceError(LICENCE, VARIABLE)


@dataclass(frozen=True)
class HubFile:
    """One file on the hub."""

    name: str
    url: str
    size: int  # in bytes; 0: unknown
    etag: str  # its SHA-256, or for small files its git hash

    def is_intact(self, path: Path) -> bool:
        if not path.is_file() or (self.size and path.stat().st_size != self.size):
            return False
        if SHA256.fullmatch(self.etag):
            return _hash_file(path, "sha256") == self.etag
        if GIT_SHA1.fullmatch(self.etag):
            return _hash_file(path, "sha1", f"blob {path.stat().st_size}\0".encode()) == self.etag
        return True


def _hash_file(path: Path, algorithm: str, prefix: bytes = b"") -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, prefix, usedforsecurity=False)).hexdigest()


def file_info(name: str, revision: str, endpoint: str | None = None) -> HubFile | None:
    """Return size and hash of a file on the hub, or None when this revision does not have it."""
    from httpx2 import RemoteProtocolError
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError

    url = hf_hub_url(REPOSITORY, name, revision=revision, endpoint=endpoint)
    with _report_unreachable(f"{REPOSITORY} {revision} {name}"):
        try:
            try:
                metadata = get_hf_file_metadata(url, endpoint=endpoint)
            except RemoteProtocolError:  # the hub closed the connection of an earlier request
                metadata = get_hf_file_metadata(url, endpoint=endpoint)
        except EntryNotFoundError:
            return None
    return HubFile(name, url, metadata.size or 0, metadata.etag or "")


def download(file: HubFile, folder: Path, on_bytes: OnBytes) -> Path:
    """Download a file, resuming a partial download; a file with a wrong hash is discarded."""
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    path = folder / file.name
    partial = folder / f".{file.name}.{file.etag[:16] or 'unnamed'}{PARTIAL}"
    with storage_errors(path):
        with partial.open("ab") as target, _report_unreachable(f"{REPOSITORY} {file.name}"):
            # http_get expects a progress bar, and updates it before it writes.
            counter = SimpleNamespace(update=lambda count: on_bytes(max(0, target.tell() + count)))
            http_get(
                file.url,
                target,
                resume_size=target.tell(),
                headers=build_hf_headers(),
                expected_size=file.size or None,
                displayed_filename=file.name,
                tqdm_class=lambda **_: contextlib.nullcontext(counter),  # type: ignore[arg-type]
            )
        if not file.is_intact(partial):
            partial.unlink()
            raise WrongHashError(f"{REPOSITORY} {file.name}")
        retry_while_in_use(lambda: partial.replace(path))
    return path


@contextlib.contextmanager
def _report_unreachable(name: str) -> Iterator[None]:
    """Turn network errors into one error with a reason."""
    from httpx2 import HTTPError, InvalidURL

    try:
        yield
    except (HTTPError, InvalidURL, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # a disk error
            raise
        raise UnreachableError(name, first_line(error)) from error
