"""A hub on this machine that takes models: the calls that huggingface_hub makes to push small files."""

import base64
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.local_server import Handler, listening


@dataclass
class UploadHub:
    """What was made and sent."""

    token: str  # the one that may write
    repositories: dict[str, str] = field(default_factory=dict)  # who may see each, by name
    files: dict[tuple[str, str], bytes] = field(default_factory=dict)  # by repository and path
    tokens: set[str] = field(default_factory=set)  # of all requests
    unknown: list[str] = field(default_factory=list)  # calls that were not expected
    endpoint: str = ""

    def answer(self, path: str, content: bytes, token: str) -> tuple[int, dict[str, Any]]:
        self.tokens.add(token)
        if token != self.token:
            return 401, {"error": f"Invalid credentials for {token}"}
        if path == "/api/repos/create":
            return self.create(json.loads(content))
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        if "/preupload/" in path:
            plain = {"uploadMode": "regular", "shouldIgnore": False}
            return 200, {"files": [{"path": file["path"], **plain} for file in json.loads(content)["files"]]}
        if "/commit/" in path:
            return self.commit("/".join(path.split("/")[3:5]), content)
        self.unknown.append(path)
        return 404, {"error": "not found"}

    def create(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        name = f"{request['organization']}/{request['name']}"
        if name in self.repositories:
            return 409, {"error": "You already created this repo", "url": f"{self.endpoint}/{name}"}
        self.repositories[name] = request["visibility"]
        return 200, {"url": f"{self.endpoint}/{name}"}

    def commit(self, name: str, content: bytes) -> tuple[int, dict[str, Any]]:
        for line in map(json.loads, content.splitlines()):
            if line["key"] == "file":
                self.files[name, line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        return 200, {"commitUrl": f"{self.endpoint}/{name}/commit/1", "commitOid": "1"}


@contextlib.contextmanager
def taking(hub: UploadHub) -> Iterator[UploadHub]:
    """Serve until the block is left."""

    class HubHandler(Handler):
        def do_POST(self) -> None:  # noqa: N802  # as http.server calls it
            self.reply(self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def do_GET(self) -> None:  # noqa: N802  # as http.server calls it
            self.reply(b"")

        def reply(self, sent: bytes) -> None:
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            status, answer = hub.answer(self.path.partition("?")[0], sent, token)
            self.answer_with(status, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    with listening(HubHandler) as hub.endpoint:
        yield hub
