"""Speech for Home Assistant and other programs that speak the Wyoming protocol; it has no passwords."""

import asyncio
import importlib.util
import json
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from utils.core import VERSION
from utils.media.rates import OUTPUT_RATE
from utils.server.facts import RequestError, ServerSettingError
from utils.server.schema import request_error
from utils.server.service import SpeechService

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wyoming.event import Event
    from wyoming.info import Info
    from wyoming.tts import SynthesizeVoice

SAMPLE_BYTES = 2
SENTENCE_END = re.compile(r"(?<=[።፧፨])\s*|(?<=[.!?…])\s+|\n+")


class Listener:
    """A server for an address such as tcp://127.0.0.1:10200."""

    def __init__(self, address: str, service: SpeechService) -> None:
        if importlib.util.find_spec("wyoming") is None:
            raise ServerSettingError("no_wyoming")
        from wyoming.server import AsyncServer

        self.service = service
        try:
            self.server = AsyncServer.from_uri(address)
        except ValueError as error:
            raise ServerSettingError("wyoming_address", address, str(error)) from error

    async def start(self) -> None:
        """Accept connections until the server is stopped."""
        from wyoming.error import Error
        from wyoming.server import AsyncEventHandler

        service = self.service

        class Handler(AsyncEventHandler):
            """One connection."""

            conversation = None

            async def handle_event(self, event: "Event") -> bool:
                self.conversation = self.conversation or Conversation(service, self.write_event)
                try:
                    await self.conversation.handle(event)
                except Exception as error:  # noqa: BLE001  # sent to the client
                    self.conversation = None
                    problem = request_error(error)
                    await self.write_event(Error(str(problem), problem.fault).event())
                return True

        try:
            await self.server.start(Handler)
        except OSError as error:
            raise ServerSettingError("wyoming_port", reason=str(error.strerror)) from error

    async def stop(self) -> None:
        await self.server.stop()


@dataclass
class Conversation:
    """What a client has sent and hears. A text that arrives in parts is spoken sentence by sentence."""

    service: SpeechService
    write: "Callable[[Event], Awaitable[None]]"
    text: str | None = None  # that is arriving and is not spoken yet
    voice: "SynthesizeVoice | None" = None  # of it
    speaks: bool = False  # the client was told that audio follows

    # Long because it lists what each event of the protocol starts.
    async def handle(self, event: "Event") -> None:
        from wyoming.info import Describe
        from wyoming.tts import Synthesize, SynthesizeChunk, SynthesizeStart, SynthesizeStop, SynthesizeStopped

        if Describe.is_type(event.type):
            await self.write(describe(self.service).event())
        elif SynthesizeStart.is_type(event.type):
            self.text, self.voice = "", SynthesizeStart.from_event(event).voice
        elif self.text is None:
            if Synthesize.is_type(event.type):
                request = Synthesize.from_event(event)
                self.voice = request.voice
                await self._speak([request.text], last=True)
        elif SynthesizeChunk.is_type(event.type):  # a Synthesize meanwhile is the same text once more, for old servers
            sentences, self.text = complete_sentences(self.text + SynthesizeChunk.from_event(event).text)
            if len(self.text) > self.service.config.longest_text:
                raise RequestError("text_too_long", count=len(self.text), limit=self.service.config.longest_text)
            await self._speak(sentences)
        elif SynthesizeStop.is_type(event.type):
            text = self.text
            self.text = None
            await self._speak([text] if is_spoken(text) else [], last=True)
            await self.write(SynthesizeStopped().event())

    async def _speak(self, sentences: list[str], *, last: bool = False) -> None:
        from wyoming.audio import AudioChunk, AudioStart, AudioStop

        audio = partial(AudioChunk, OUTPUT_RATE, SAMPLE_BYTES, 1)
        for sentence in sentences:
            stream = self.service.open(_body(sentence, self.voice))
            try:
                async with asyncio.timeout_at(stream.deadline):
                    first = await stream.next_chunk()
                    if not self.speaks:
                        await self.write(AudioStart(OUTPUT_RATE, SAMPLE_BYTES, 1).event())
                    self.speaks = True
                    async for chunk in stream.chunks(first):
                        await self.write(audio(chunk).event())
            finally:
                stream.close()
        if last and self.speaks:
            await self.write(AudioStop().event())
            self.speaks = False


def complete_sentences(text: str) -> tuple[list[str], str]:
    """Return the sentences that have ended, and the rest of a text that is still arriving."""
    *sentences, rest = SENTENCE_END.split(text)
    return [*filter(is_spoken, sentences)], rest


def is_spoken(text: str) -> bool:
    return any(map(str.isalnum, text))


def _body(text: str, voice: "SynthesizeVoice | None") -> bytes:
    name = voice.name if voice and voice.name else "default"
    return json.dumps({"input": text, "voice": name, "response_format": "pcm"}).encode()


def describe(service: SpeechService) -> "Info":
    """Return what the protocol calls info: one program with all voices."""
    from wyoming.info import Attribution, Info, TtsProgram, TtsVoice

    about = {"attribution": Attribution("Amharic XTTS", ""), "installed": True, "version": VERSION}
    voices = [
        TtsVoice(name=name, description=name, languages=[service.defaults.language], **about)  # type: ignore[arg-type]
        for name in service.voices()
    ]
    name = service.config.name
    program = TtsProgram(name=name, description=name, voices=voices, supports_synthesize_streaming=True, **about)  # type: ignore[arg-type]
    return Info(tts=[program])
