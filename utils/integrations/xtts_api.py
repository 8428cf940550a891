"""The HTTP calls of xtts-api-server, which SillyTavern and other programs make."""

import json
import re
from collections.abc import Mapping
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.responses import Response

from utils.amharic.alphabet import ETHIOPIC
from utils.config import SpeechConfig
from utils.core.languages import AMHARIC, find
from utils.server.facts import RequestError
from utils.server.schema import json_object
from utils.server.service import SpeechService
from utils.server.stream import respond
from utils.xtts.language_packs import pack_for

SETTINGS = ("temperature", "speed", "repetition_penalty", "top_p", "top_k")  # others have no effect here
HAS_ETHIOPIC = re.compile(f"[{ETHIOPIC}]")


def add_routes(app: FastAPI, service: SpeechService) -> None:
    """Add the calls."""
    chosen: dict[str, float] = {}  # settings that a client has set for all requests that follow
    _add_fixed_routes(app, service)
    _add_settings(app, service.defaults, chosen)
    _add_speech(app, service, chosen)


def _add_fixed_routes(app: FastAPI, service: SpeechService) -> None:
    """Add what programs ask for and cannot change here: models, folders and files belong to the server."""
    language = service.defaults.language

    @app.get("/languages")
    async def known_languages() -> dict[str, dict[str, str]]:
        return {"languages": {find(language).name: language}}

    @app.get("/get_models_list")
    async def models() -> list[str]:
        return [service.config.name]

    @app.get("/get_folders")
    async def folders() -> dict[str, str]:
        return {"speaker_folder": "", "output_folder": "", "model_folder": ""}  # none of the client's business

    @app.post("/switch_model")
    async def switch_model(request: Request) -> dict[str, str]:
        name = str(json_object(await request.body()).get("model_name", ""))
        if name != service.config.name:
            raise RequestError("model_not_found", service.config.name, param="model_name")
        return {"message": "Model is loaded"}

    @app.post("/set_output")
    @app.post("/set_speaker_folder")
    @app.post("/tts_to_file")
    async def refuse_folders() -> None:
        """Clients choose no folders and files of the computer of the server."""
        raise RequestError("not_allowed")

    @app.get("/speakers_list")
    async def speakers_list() -> list[str]:
        return list(service.voices())


def _add_settings(app: FastAPI, defaults: SpeechConfig, chosen: dict[str, float]) -> None:
    @app.get("/get_tts_settings")
    async def get_settings() -> dict[str, float]:
        return {name: chosen.get(name, getattr(defaults, name)) for name in SETTINGS}

    @app.post("/set_tts_settings")
    async def set_settings(request: Request) -> dict[str, str]:
        """Set temperature, speed, repetition penalty, top_p and top_k for all requests of this interface."""
        sent = json_object(await request.body())
        numbers = {name: _number(name, sent[name]) for name in SETTINGS if name in sent}
        SpeechConfig.parse(defaults.model_dump() | numbers, source="The request")
        chosen.update(numbers)
        return {"message": "Settings successfully applied"}


def _add_speech(app: FastAPI, service: SpeechService, chosen: dict[str, float]) -> None:
    """Add the voices, and what speaks with them."""
    language = service.defaults.language

    def sample_text() -> str:
        return pack_for(language).samples[0]

    @app.get("/speakers")
    async def speakers(request: Request) -> list[dict[str, str]]:
        preview = f"{request.base_url}tts_stream?language={language}&text={quote(sample_text())}&speaker_wav="
        return [{"name": name, "voice_id": name, "preview_url": preview + quote(name)} for name in service.voices()]

    @app.get("/sample/{name}")
    async def sample(name: str, request: Request) -> Response:
        """Speak a sentence in a voice; recordings are not handed out."""
        return await _speak(service, {"text": sample_text(), "speaker_wav": name}, chosen, request)

    @app.post("/tts_to_audio/")
    @app.post("/tts_to_audio")
    async def tts_to_audio(request: Request) -> Response:
        """Speak a text and send a WAV."""
        return await _speak(service, json_object(await request.body()), chosen, request)

    @app.get("/tts_stream/")
    @app.get("/tts_stream")
    async def tts_stream(request: Request) -> Response:
        """Speak a text of the query, for the source of an audio element."""
        return await _speak(service, request.query_params, chosen, request)


async def _speak(
    service: SpeechService, values: Mapping[str, object], chosen: Mapping[str, float], request: Request
) -> Response:
    text = str(values.get("text", ""))
    # These clients cannot choose Amharic; its script says which language it is.
    language = AMHARIC.code if HAS_ETHIOPIC.search(text) else values.get("language") or service.defaults.language
    voice = str(values.get("speaker_wav") or "default").removesuffix(".wav")
    body = {"input": text, "voice": voice, "language": language, "response_format": "wav", **chosen}
    return await respond(service.open(json.dumps(body).encode()), request)


def _number(name: str, value: object) -> float:
    """Read a number, which these clients may send as text."""
    try:
        number = float(str(value))
    except ValueError as error:
        raise RequestError("invalid_value", f"{name} must be a number.", param=name) from error
    return int(number) if name == "top_k" and number.is_integer() else number
