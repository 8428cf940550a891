"""A web server on this machine that says nothing of its own."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Keeps connections, and tells the tests' output nothing of them."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        return


@contextlib.contextmanager
def listening(handler: type[Handler]) -> Iterator[str]:
    """Answer until the block is left; give the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
