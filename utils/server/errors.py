"""What goes wrong, as callers of OpenAI's API expect to read it: a status, and one sentence in JSON."""

import logging
import re
from collections.abc import Mapping

from fastapi.responses import JSONResponse

from utils.core.errors import AmharicTtsError, ConfigError, TextError

LONGEST = 600  # characters of a sentence, which may quote what was sent
OUR_FAULT = "This is a fault of the server; its log says more."
FOLDERS = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][^\s\\/:,;]+)+[\\/](?=[^\s\\/])")  # callers need not know them

logger = logging.getLogger(__name__)


class RefusedError(AmharicTtsError):
    """A request that is not answered with speech.

    Args:
        status: As HTTP numbers it.
        code: One word for programs.
        message: One sentence for people.
        param: The field of the request that is at fault.
        after: Seconds after which trying again makes sense; 0: it does not.
    """

    def __init__(self, status: int, code: str, message: str, *, param: str = "", after: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.after = after

    @property
    def headers(self) -> dict[str, str]:
        """Return what the answer says beside its sentence."""
        headers = {"Retry-After": str(self.after)} if self.after else {}
        return headers | ({"WWW-Authenticate": "Bearer"} if self.status == 401 else {})


def refused(error: Exception) -> RefusedError:
    """Turn any error into what is told of it; faults of ours are told without details, and logged with them."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, TimeoutError):
        return RefusedError(504, "timeout", "The text was not spoken in the time that a request may take.")
    if isinstance(error, TextError | ConfigError):
        return RefusedError(400, "invalid_value", without_folders(str(error)))
    logger.error("A request failed.", exc_info=error)
    if isinstance(error, AmharicTtsError):
        return RefusedError(500, "speech_failed", without_folders(str(error)))
    return RefusedError(500, "server_error", OUR_FAULT)


def without_folders(message: str) -> str:
    """Name files without the folders they lie in, and end what gets too long."""
    short = FOLDERS.sub("", message)
    return short if len(short) <= LONGEST else f"{short[:LONGEST]} …"


def body(error: RefusedError) -> dict[str, Mapping[str, str | None]]:
    """Return the JSON of an error."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    return {"error": {"message": str(error), "type": kind, "param": error.param or None, "code": error.code}}


def answer(error: RefusedError) -> JSONResponse:
    """Return the whole answer of an error."""
    return JSONResponse(body(error), error.status, error.headers)
