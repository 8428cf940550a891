"""How both servers listen: a socket that is bound first, and connections that cannot be held open for nothing."""

import asyncio
import errno
import logging
import socket
import threading
import time
from operator import itemgetter
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from utils.server.facts import ServerSettingError

GRACE_SECONDS = 3  # for open responses when the server is stopped
HEADER_SECONDS = 10.0  # in which the headers of a request must arrive
MAX_CONNECTIONS = 500  # a process may usually open 1,024 files
BACKLOG = 128
LAST_PORT = 65_535
TAKEN = (errno.EADDRINUSE, errno.EACCES)  # the second by a program that shares its port with nobody


class Connection(H11Protocol):
    """A connection that is closed when the headers of a request take too long, or too many others are open."""

    timer: asyncio.TimerHandle | None = None  # while headers are awaited

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base
        super().connection_made(transport)
        self._await_headers()
        if len(self.connections) > MAX_CONNECTIONS:  # the first to go is the one that has waited longest
            waiting = [
                (each.timer.when(), each) for each in self.connections if isinstance(each, Connection) and each.timer
            ]
            min(waiting, key=itemgetter(0))[1].transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _await_headers(self) -> None:
        """Start the timer unless it runs, or stop it when the headers have arrived."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_timer()
        elif self.timer is None:
            self.timer = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

    def _stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def server_config(app: Any, **options: Any) -> uvicorn.Config:  # noqa: ANN401  # any ASGI application, any option
    """Return the settings of uvicorn; forwarded headers are the business of the application (``origins``)."""
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        proxy_headers=False,
        server_header=False,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        **options,
    )


class Server(uvicorn.Server):
    """A server that stops without a traceback of each response that it cancels."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


class BackgroundServer(Server):
    """A server in a thread of its own."""

    def start(self, listener: socket.socket) -> None:
        """Return once requests are answered."""
        self.thread = threading.Thread(target=self.run, kwargs={"sockets": [listener]}, name="page", daemon=True)
        self.thread.start()
        while not self.started and self.thread.is_alive():
            time.sleep(0.01)

    def close(self) -> None:
        self.should_exit = True
        self.thread.join(2 * GRACE_SECONDS)


def bind(host: str, port: int, tries: int = 1) -> socket.socket:
    """Listen on a port or, with more ``tries``, on the next free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last = min(port + tries - 1, LAST_PORT)
    for each in range(port, last + 1):
        try:
            return socket.create_server((host.strip("[]"), each), family=family, backlog=BACKLOG, reuse_port=False)
        except OSError as error:
            if error.errno not in TAKEN or each == last:
                raise ServerSettingError("port", f"{host} port {each}", str(error.strerror)) from error
    raise AssertionError("there is a first port")


def url(host: str, port: int) -> str:
    name = host.strip("[]")
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
