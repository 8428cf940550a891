"""Speech for Home Assistant and other programs that speak the Wyoming protocol; it has no passwords."""

import asyncio
import importlib.util
import json
from functools import partial
from typing import TYPE_CHECKING

from utils.core.errors import ConfigError
from utils.media.rates import OUTPUT_RATE
from utils.server.schema import request_error
from utils.server.service import SpeechService

if TYPE_CHECKING:
    from wyoming.event import Event
    from wyoming.info import Info
    from wyoming.server import AsyncServer
    from wyoming.tts import Synthesize

SAMPLE_BYTES = 2


def parse_address(address: str) -> "AsyncServer":
    """Make a server for an address such as tcp://127.0.0.1:10200."""
    if importlib.util.find_spec("wyoming") is None:
        raise ConfigError("The package wyoming is not installed.", hint="Run: pip install wyoming")
    from wyoming.server import AsyncServer

    try:
        return AsyncServer.from_uri(address)
    except ValueError as error:
        raise ConfigError(f"wyoming: {error}.", hint="Use an address like tcp://127.0.0.1:10200.") from error


async def start(server: "AsyncServer", service: SpeechService) -> None:
    """Accept connections until the event loop ends."""
    from wyoming.audio import AudioChunk, AudioStart, AudioStop
    from wyoming.error import Error
    from wyoming.info import Describe
    from wyoming.server import AsyncEventHandler
    from wyoming.tts import Synthesize

    class Handler(AsyncEventHandler):
        """One connection."""

        async def handle_event(self, event: "Event") -> bool:
            try:
                if Describe.is_type(event.type):
                    await self.write_event(describe(service).event())
                elif Synthesize.is_type(event.type):
                    await self._speak(Synthesize.from_event(event))
            except Exception as error:  # noqa: BLE001  # sent to the client
                problem = request_error(error)
                await self.write_event(Error(str(problem), problem.code).event())
            return True

        async def _speak(self, request: "Synthesize") -> None:
            stream = service.open(_body(request))
            audio = partial(AudioChunk, OUTPUT_RATE, SAMPLE_BYTES, 1)
            try:
                async with asyncio.timeout_at(stream.deadline):
                    first = await stream.next_chunk()
                    await self.write_event(AudioStart(OUTPUT_RATE, SAMPLE_BYTES, 1).event())
                    async for chunk in stream.chunks(first):
                        await self.write_event(audio(chunk).event())
                await self.write_event(AudioStop().event())
            finally:
                stream.close()

    try:
        await server.start(Handler)
    except OSError as error:
        raise ConfigError(f"wyoming: {error.strerror}.", hint="Choose another address or port.") from error


def _body(request: "Synthesize") -> bytes:
    voice = request.voice.name if request.voice and request.voice.name else "default"
    return json.dumps({"input": request.text, "voice": voice, "response_format": "pcm"}).encode()


def describe(service: SpeechService) -> "Info":
    """Return what the protocol calls info: one program with all voices."""
    from wyoming.info import Attribution, Info, TtsProgram, TtsVoice

    about = {"attribution": Attribution("Amharic XTTS", ""), "installed": True, "version": "1.1"}
    voices = [
        TtsVoice(name=name, description=name, languages=[service.defaults.language], **about)  # type: ignore[arg-type]
        for name in service.voices()
    ]
    name = service.config.name
    return Info(tts=[TtsProgram(name=name, description=name, voices=voices, **about)])  # type: ignore[arg-type]
