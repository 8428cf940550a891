"""A hub on this machine: serves files with the headers that huggingface_hub reads, and breaks off when told to."""

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.local_server import Handler, listening

LARGE = 1000  # bytes from which a file has a SHA-256 instead of git's hash


@dataclass
class Hub:
    """What is served, and what was requested."""

    files: dict[tuple[str, str], bytes]  # by revision and name
    hang_up: dict[str, int] = field(default_factory=dict)  # how often to close the connection instead, by name
    announced: dict[str, str] = field(default_factory=dict)  # hashes to announce instead of the true ones, by name
    requests: list[tuple[str, str, str, str]] = field(default_factory=list)  # method, revision, name and range
    endpoint: str = ""

    def downloads(self) -> list[str]:
        return [name for method, _, name, _ in self.requests if method == "GET"]


def etag(content: bytes) -> str:
    if len(content) >= LARGE:
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()


@contextlib.contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Serve until the block is left."""

    class HubHandler(Handler):
        def do_HEAD(self) -> None:  # noqa: N802  # as http.server calls it
            self.answer("HEAD")

        def do_GET(self) -> None:  # noqa: N802  # as http.server calls it
            self.answer("GET")

        def answer(self, method: str) -> None:
            revision, _, name = self.path.partition("/resolve/")[2].partition("/")
            hub.requests.append((method, revision, name, self.headers.get("Range", "")))
            if hub.hang_up.get(name, 0) > 0:
                hub.hang_up[name] -= 1
                self.close_connection = True
                return
            content = hub.files.get((revision, name))
            if content is None:
                self.answer_with(404, b"", {"X-Error-Code": "EntryNotFound"})
                return
            first = int(self.headers.get("Range", "bytes=0-")[6:].partition("-")[0])
            headers = {"ETag": f'"{hub.announced.get(name, etag(content))}"', "X-Repo-Commit": "0" * 40}
            if first:
                headers["Content-Range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"
            self.answer_with(206 if first else 200, content[first:], headers, has_body=method == "GET")

    with listening(HubHandler) as hub.endpoint:
        yield hub
