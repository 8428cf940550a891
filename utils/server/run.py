"""Start and stop the server. It binds its address first and responds while the model is still loading."""

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import uvicorn

from utils.config import ServeConfig, SpeechConfig
from utils.core.errors import ConfigError
from utils.server.app import create_app, speech_defaults
from utils.server.auth import api_key
from utils.speech.session import Check, SpeechSession

if TYPE_CHECKING:
    from utils.speech.synthesizer import Synthesizer

GRACE_SECONDS = 3  # for open responses when the server is stopped
BACKLOG = 128

logger = logging.getLogger(__name__)


def serve(
    config: ServeConfig,
    load: Callable[[SpeechConfig, Check], "Synthesizer"],
    on_start: Callable[[str], object],
) -> None:
    """Serve until the process is stopped.

    Args:
        config: The settings of the server.
        load: Loads the model, as for ``SpeechSession``.
        on_start: Called with the address.
    """
    session = SpeechSession(load, max_waiting=config.waiting)
    errors: list[Exception] = []
    app = create_app(config, session, api_key(config.api_key_file, config.host))
    with closing(bind(config.host, config.port)) as listener:
        server = _Server(app, session)
        on_start(url(config.host, listener.getsockname()[1]))

        def loaded(item: object) -> None:
            if isinstance(item, Exception):
                errors.append(item)
                server.should_exit = True

        session.submit(_do_nothing, speech_defaults(config), deliver=loaded)
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:  # raised again by uvicorn once everything has ended
            logger.info("Stopped by Ctrl-C.")
        finally:
            session.close()
    if errors:
        raise errors[0]


def _do_nothing(_model: "Synthesizer") -> Iterator[None]:
    """Only have the model loaded."""
    return iter(())


class _Server(uvicorn.Server):
    """A uvicorn server that closes the speech session when it stops."""

    def __init__(self, app: object, session: SpeechSession) -> None:
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
        self.session = session

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for open responses for a while, then cancel the rest."""
        await super().shutdown(sockets)
        self.session.close()


def bind(host: str, port: int) -> socket.socket:
    """Bind the address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        address = (host.strip("[]"), port)
        return socket.create_server(address, family=family, backlog=BACKLOG, reuse_port=False)
    except OSError as error:
        raise ConfigError(
            f"Cannot bind {host} port {port}: {error.strerror}.",
            hint="Choose another --port, or an address of this computer with --host.",
        ) from error


def url(host: str, port: int) -> str:
    """Return the URL of an address."""
    name = host.strip("[]")
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
