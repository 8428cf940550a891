"""Workarounds that make gradio's page open and react faster; measured in docs/log.md.

- ``skip_stub_files`` leaves out what ``import gradio`` writes for editors.
- ``FrontPage`` answers the page and its scripts from memory, which gradio makes anew for each visit.
- ``PATCHES`` replaces slow code in gradio's scripts on their way to the browser. Each matches the version in
  requirements.txt; in another version it is not found, and the page is only slower.
"""

import copy
import importlib.util
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

STUB_MODULE, STUB_WRITER = "gradio.component_meta", "create_or_modify_pyi"

SCRIPTS = "/assets/"
ADDRESS_HEADERS = (b"host", b"x-forwarded-host", b"x-forwarded-proto", b"x-gradio-server")  # in gradio's answer
PARTIAL_HEADERS = {b"range", b"if-none-match", b"if-modified-since", b"if-range"}  # ask for less than the whole

PATCHES = (
    # The whole configuration is watched for changes, though it never changes.
    ("R(M,S(G).get_url_config(),!0)", "R(M,S(G).get_url_config())"),
    # Everything is built a second time, right after the first.
    ("le(()=>{v(),oe(()=>{O.reload(", "le(()=>{v()&&oe(()=>{O.reload("),
    # For each widget all events are searched.
    (
        (
            "find_attached_events(e,t){let n=t.filter(t=>t.targets.find(([t])=>t===e.id))"
            ".map(t=>{let n=t.targets.find(([t])=>t===e.id);return n?n[1]:null}).filter(Boolean);"
        ),
        (
            "find_attached_events(e,t){"
            "if(this.tied_by!==t){"
            "this.tied_by=t;this.tied=new Map;"
            "for(let{targets:e}of t)for(let[t,n]of new Map([...e].reverse()))"
            "n&&this.tied.set(t,[...this.tied.get(t)??[],n])}"
            "let n=[...this.tied.get(e.id)??[]];"
        ),
    ),
    # Each event searches for its widget even when it has nothing to give it.
    (
        "async set_event_args(e,t){let n={},r=await",
        "async set_event_args(e,t){if(!Object.keys(t).length)return()=>{};let n={},r=await",
    ),
    # After each event the status of every widget of any event is renewed, even where it is hidden.
    (
        "Object.entries(this.loading_stati.current)",
        "Object.entries(this.loading_stati.current).filter(([,e])=>e.show_progress!==`hidden`)",
    ),
)


def skip_stub_files() -> None:
    """Keep the coming ``import gradio`` from writing stub files; the wheel brings them along."""
    if STUB_MODULE not in sys.modules:
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds the module that writes stub files, once."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name != STUB_MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec and spec.loader:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    """Loads a module with its own loader and replaces the writer of stub files."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        setattr(module, STUB_WRITER, lambda *_: None)


class FrontPage:
    """Caches the page and its scripts: gradio needs 0.3 s for 700 widgets each time.

    The page holds its own address, so only the last answer of each path is kept.

    Args:
        app: The application behind it.
        public: Whether the page is the same for everybody, which it is not with a password; its scripts always are.
    """

    def __init__(self, app: ASGIApp, *, public: bool) -> None:
        self.app = app
        self.public = public
        self.cache: dict[str, tuple[list[bytes], list[Message]]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from the cache, or hand the request on."""
        if not is_cacheable(scope) or (scope["path"] == "/" and not self.public):
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        address = [scope["scheme"].encode(), *(headers.get(name, b"") for name in ADDRESS_HEADERS)]
        cached_for, response = self.cache.get(scope["path"], ([], []))
        if cached_for != address:
            response = await self._respond(scope, receive)
            if response[0]["status"] == 200:
                self.cache[scope["path"]] = address, response
        for message in response:
            await send(copy.deepcopy(message))  # compression changes it in place

    async def _respond(self, scope: Scope, receive: Receive) -> list[Message]:
        response: list[Message] = []

        async def collect(message: Message) -> None:
            response.append(message)

        await self.app(scope, receive, collect)
        return _patched(response) if scope["path"].endswith(".js") else response


def _patched(response: list[Message]) -> list[Message]:
    head, *parts = response
    script = b"".join(part["body"] for part in parts)
    patched = patch(script)
    if patched == script:
        return response
    headers = MutableHeaders(raw=head["headers"])
    headers["content-length"] = str(len(patched))
    for name in ("etag", "last-modified"):  # of the unpatched file
        del headers[name]
    return [head, {"type": "http.response.body", "body": patched}]


def patch(script: bytes) -> bytes:
    """Apply the patches to one of gradio's scripts."""
    for old, new in PATCHES:
        script = script.replace(old.encode(), new.encode())
    return script


def is_cacheable(scope: Scope) -> bool:
    """Tell whether a request is for the page or one of its scripts."""
    if scope["type"] != "http" or scope["method"] != "GET" or scope["query_string"]:
        return False
    path: str = scope["path"]
    return path == "/" or (path.startswith(SCRIPTS) and not PARTIAL_HEADERS & dict(scope["headers"]).keys())
