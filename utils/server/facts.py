"""What can be wrong with a request, or with the settings of a server, as typed errors."""

from enum import StrEnum

from utils.core.errors import AmharicTtsError, ConfigError


class Fault(StrEnum):
    """Why a request is refused or fails: one word for programs."""

    WRONG_HOST = "wrong_host"
    WRONG_ORIGIN = "wrong_origin"
    INVALID_API_KEY = "invalid_api_key"
    NOT_ALLOWED = "not_allowed"
    NOT_FOUND = "not_found"
    NOT_JSON = "not_json"
    INVALID_JSON = "invalid_json"
    INVALID_VALUE = "invalid_value"
    UNKNOWN_VOICE = "unknown_voice"
    MODEL_NOT_FOUND = "model_not_found"
    TEXT_TOO_LONG = "text_too_long"
    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"
    GONE = "gone"
    RATE_LIMIT = "rate_limit_exceeded"
    LOADING = "loading"
    STOPPING = "stopping"
    TIMEOUT = "timeout"
    DISK_FULL = "disk_full"
    SPEECH_FAILED = "speech_failed"
    SERVER_ERROR = "server_error"


STATUS = {  # of HTTP; 400 otherwise
    Fault.INVALID_API_KEY: 401,
    Fault.WRONG_HOST: 403,
    Fault.WRONG_ORIGIN: 403,
    Fault.NOT_ALLOWED: 403,
    Fault.NOT_FOUND: 404,
    Fault.TOO_SLOW: 408,
    Fault.GONE: 408,
    Fault.TOO_LARGE: 413,
    Fault.NOT_JSON: 415,
    Fault.RATE_LIMIT: 429,
    Fault.SPEECH_FAILED: 500,
    Fault.SERVER_ERROR: 500,
    Fault.LOADING: 503,
    Fault.STOPPING: 503,
    Fault.TIMEOUT: 504,
    Fault.DISK_FULL: 507,
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


class ServerProblem(StrEnum):
    """What is wrong with a setting of a server."""

    NO_KEY = "no_key"
    WEAK_KEY = "weak_key"
    UNREADABLE_KEY = "unreadable_key"
    EMPTY_KEY = "empty_key"
    LOGIN = "login"
    PORT = "port"
    PROXY = "proxy"
    VOICES = "voices"
    NO_WYOMING = "no_wyoming"
    WYOMING_ADDRESS = "wyoming_address"
    WYOMING_PORT = "wyoming_port"


class ServerSettingError(ConfigError):
    """A server cannot be started with its settings."""

    problem: ServerProblem
    value: str = ""  # of the setting, never a secret
    reason: str = ""
