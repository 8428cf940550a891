"""What can be wrong with a request, or with the settings of a server, as typed errors."""

from typing import Literal

from utils.core.errors import AmharicTtsError, ConfigError

Fault = Literal[
    "wrong_host",
    "wrong_origin",
    "invalid_api_key",
    "not_allowed",
    "not_found",
    "not_json",
    "invalid_json",
    "invalid_value",
    "unknown_voice",
    "model_not_found",
    "text_too_long",
    "too_large",
    "too_slow",
    "gone",
    "rate_limit_exceeded",
    "loading",
    "stopping",
    "timeout",
    "disk_full",
    "speech_failed",
    "server_error",
]
STATUS: dict[Fault, int] = {  # of HTTP; 400 otherwise
    "invalid_api_key": 401,
    "wrong_host": 403,
    "wrong_origin": 403,
    "not_allowed": 403,
    "not_found": 404,
    "too_slow": 408,
    "gone": 408,
    "too_large": 413,
    "not_json": 415,
    "rate_limit_exceeded": 429,
    "speech_failed": 500,
    "server_error": 500,
    "loading": 503,
    "stopping": 503,
    "timeout": 504,
    "disk_full": 507,
}


class RequestError(AmharicTtsError):
    """A request that gets an error as its response."""

    fault: Fault
    detail: str = ""  # of a value that is wrong
    count: int = 0
    limit: int = 0
    param: str = ""  # the field of the request that is wrong
    retry_after: int = 0  # seconds after which trying again makes sense; 0 if it does not

    @property
    def status(self) -> int:
        return STATUS.get(self.fault, 400)


class ServerSettingError(ConfigError):
    """A server cannot be started with its settings."""

    problem: Literal[
        "no_key",
        "weak_key",
        "unreadable_key",
        "empty_key",
        "login",
        "port",
        "proxy",
        "voices",
        "no_wyoming",
        "wyoming_address",
        "wyoming_port",
    ]
    value: str = ""  # of the setting, never a secret
    reason: str = ""
