"""Starting and ending the server: its address is taken first, then the model is loaded while it answers already."""

import contextlib
import logging
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from utils.config import ServeConfig, SpeechConfig
from utils.core.addresses import is_loopback
from utils.core.errors import ConfigError
from utils.server.app import Rules, application
from utils.server.auth import api_key
from utils.server.queue import Desk, Speaks
from utils.server.voices import Voices

GRACE_SECONDS = 3  # for answers that are on their way when the server is stopped
BACKLOG = 128


def rules_of(config: ServeConfig) -> Rules:
    """Read and check all that the settings name, before anything is loaded."""
    return Rules(
        name=config.name,
        base=SpeechConfig.load(Path(config.speech)) if config.speech else SpeechConfig(),
        voices=Voices(Path(config.voices) if config.voices else None),
        longest=config.longest_text,
        seconds=config.seconds,
        key=api_key(config.api_key_file, config.host),
        local=is_loopback(config.host),
    )


def serve(config: ServeConfig, load: Callable[[], Speaks], on_open: Callable[[str], object]) -> None:
    """Serve until somebody stops it.

    Args:
        config: The settings.
        load: Loads the model; called in a thread of its own, once the server can be reached.
        on_open: Is told the address.
    """
    rules = rules_of(config)
    desk = Desk(config.waiting, config.clients)
    with contextlib.closing(listening(config.host, config.port)) as door:
        server = _Server(application(desk, rules), desk)
        on_open(address(config.host, door.getsockname()[1]))
        desk.start(load, on_fault=server.stop)
        try:
            server.run(sockets=[door])
        except KeyboardInterrupt:  # uvicorn raises it again once all has ended
            logging.getLogger(__name__).info("Stopped by the keyboard.")
        finally:
            desk.close()
    if desk.fault:
        raise desk.fault


class _Server(uvicorn.Server):
    """uvicorn, which ends what is being spoken when it is stopped."""

    def __init__(self, app: object, desk: Desk) -> None:
        super().__init__(
            uvicorn.Config(
                app,  # type: ignore[arg-type]  # any ASGI application
                timeout_graceful_shutdown=GRACE_SECONDS,
                log_level="warning",
                access_log=False,
                server_header=False,
                lifespan="off",
            )
        )
        self.desk = desk

    def stop(self) -> None:
        """End the server from another thread."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let answers end for a while, then break off what is left; it happens before the process is ended."""
        await super().shutdown(sockets)
        self.desk.close()


def listening(host: str, port: int) -> socket.socket:
    """Take the address, or say who may have it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        address = (host.strip("[]"), port)
        return socket.create_server(address, family=family, backlog=BACKLOG, reuse_port=False)
    except OSError as error:
        raise ConfigError(
            f"{host} port {port} cannot be listened at: {error.strerror}.",
            hint="Choose another --port, or an address of this computer with --host.",
        ) from error


def address(host: str, port: int) -> str:
    """Write an address as browsers take it."""
    name = host.strip("[]")
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
