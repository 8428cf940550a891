"""Errors in the shape of OpenAI's API: an HTTP status and one sentence in JSON."""

import logging
import re
from collections.abc import Mapping

from fastapi.responses import JSONResponse

from utils.core.errors import AmharicTtsError, ConfigError, TextError
from utils.speech.session import QueueFullError, SessionClosedError

MAX_MESSAGE = 600  # characters; a message may quote the request
FOLDERS = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][^\s\\/:,;]+)+[\\/](?=[^\s\\/])")  # none of the client's business

logger = logging.getLogger(__name__)


class RequestError(AmharicTtsError):
    """A request that gets an error as its response.

    Args:
        status: The HTTP status.
        code: One word for programs.
        message: One sentence for people.
        param: The field of the request that is wrong.
        retry_after: Seconds after which trying again makes sense; 0 if it does not.
    """

    def __init__(self, status: int, code: str, message: str, *, param: str = "", retry_after: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.retry_after = retry_after

    def body(self) -> dict[str, Mapping[str, str | None]]:
        """Return the JSON of the response."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": str(self), "type": kind, "param": self.param or None, "code": self.code}}

    def response(self) -> JSONResponse:
        """Return the response."""
        headers = {"Retry-After": str(self.retry_after)} if self.retry_after else {}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse(self.body(), self.status, headers)


def request_error(error: Exception) -> RequestError:
    """Turn any error into one for the client; the details of internal errors go to the log only."""
    match error:
        case RequestError():
            return error
        case TimeoutError():
            return RequestError(504, "timeout", "The text was not spoken within the time limit of a request.")
        case QueueFullError():
            return RequestError(429, "rate_limit_exceeded", str(error), retry_after=error.retry_after)
        case SessionClosedError():
            return RequestError(503, "stopping", "The server is shutting down.")
        case TextError() | ConfigError():
            return RequestError(400, "invalid_value", _without_folders(str(error)))
    logger.error("A request failed.", exc_info=error)
    is_ours = isinstance(error, AmharicTtsError)
    message = _without_folders(str(error)) if is_ours else "Internal server error; see the log of the server."
    return RequestError(500, "speech_failed" if is_ours else "server_error", message)


def _without_folders(message: str) -> str:
    """Strip folders from paths, and shorten what is too long."""
    short = FOLDERS.sub("", message)
    return short if len(short) <= MAX_MESSAGE else f"{short[:MAX_MESSAGE]} …"
