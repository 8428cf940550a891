"""What all interfaces of the server share: one model, its voices, open requests, and counters."""

from pathlib import Path

from utils.config import DEFAULT_VOICE, ServeConfig, SpeechConfig
from utils.server.counters import Counters
from utils.server.facts import RequestError, ServerSettingError
from utils.server.schema import body_model, find_voice, read_body
from utils.server.stream import AudioStream
from utils.speech.session import SpeechSession
from utils.studio.reference_clips import named_voices

LOADING_RETRY_SECONDS = 5


def speech_defaults(config: ServeConfig) -> SpeechConfig:
    """Return the settings of speech that requests start from."""
    defaults = SpeechConfig.load(Path(config.speech)) if config.speech else SpeechConfig()
    return defaults.model_copy(update={name: getattr(config, name) for name in ("model", "device", "precision")})


class SpeechService:
    """Checks requests for speech and opens their streams."""

    def __init__(self, config: ServeConfig, session: SpeechSession) -> None:
        self.config = config
        self.session = session
        self.defaults = speech_defaults(config)
        self.schema = body_model(self.defaults)
        self.counters = Counters()
        self.open_streams: set[AudioStream] = set()
        self._voices = Path(config.voices) if config.voices else None
        if self._voices and not self._voices.is_dir():
            raise ServerSettingError("voices", config.voices)

    @property
    def is_ready(self) -> bool:
        """Tell whether a request would be accepted now."""
        session = self.session
        has_place = session.users < session.max_active + session.max_waiting
        return session.loaded is not None and has_place and len(self.open_streams) < self.config.clients

    def voices(self) -> dict[str, str]:
        """Return the reference of each voice by its name.

        Each audio file and each subfolder of audio files in the voices folder is a voice, and takes precedence over a
        voice of the model with the same name. The folder is read at each request, so a new file is available at once.
        """
        if self.session.loaded is None:
            raise RequestError("loading", retry_after=LOADING_RETRY_SECONDS)
        own = self.session.loaded.synthesizer.voices()
        return {DEFAULT_VOICE: ""} | {name: name for name in own} | named_voices(self._voices)

    def open(self, content: bytes, *, strict: bool = False) -> AudioStream:
        """Start to speak a request in JSON."""
        body, ignored = read_body(content, self.schema, self.config.longest_text, strict=strict)
        voices = self.voices()
        if len(self.open_streams) >= self.config.clients:
            raise RequestError("rate_limit_exceeded", retry_after=1)
        speech = body.speech_config(self.defaults, find_voice(body.voice, voices))
        stream = AudioStream(self.session, body, speech, self.config.seconds, self.open_streams, self.counters)
        stream.ignored = ignored
        return stream
