"""The child's side of an isolated recogniser: loads it, then answers requests until there are no more.

A request is a line of JSON, {"language", "lengths"}, and the samples of its clips as little-endian float32. A reply is
a line of JSON: {"device"} once, then {"transcripts"}; or {"error", "hint"}, or {"fault"}.
"""

import dataclasses
import importlib
import json
import os
import sys
import threading
import time
import traceback
from typing import IO

import numpy as np

from utils.core.errors import AmharicTtsError
from utils.dataset.transcription import Engine, LoadedRecogniser
from utils.runs.processes import is_alive

LOOK_SECONDS = 1.0


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Load the recogniser of the first request and answer the others."""
    order = json.loads(requests.readline())
    threading.Thread(target=_leave_with, args=(order["parent"], order["identity"]), daemon=True).start()
    try:
        recogniser = load(Engine(**order["engine"]))
    except Exception as error:  # noqa: BLE001  # whatever it is, the parent is told
        _send(replies, _trouble(error))
        return
    _send(replies, {"device": recogniser.device})
    while line := requests.readline():
        _send(replies, _answer(recogniser, json.loads(line), requests))


def load(engine: Engine) -> LoadedRecogniser:
    """Import the factory of an engine and let it load the model."""
    module, _, name = engine.factory.partition(":")
    recogniser: LoadedRecogniser = getattr(importlib.import_module(module), name)(engine)
    return recogniser


def _answer(recogniser: LoadedRecogniser, request: dict[str, object], samples: IO[bytes]) -> dict[str, object]:
    lengths: list[int] = request["lengths"]  # type: ignore[assignment]
    clips = [np.frombuffer(samples.read(4 * length), "<f4").astype(np.float32) for length in lengths]
    try:
        said = recogniser.transcribe(clips, str(request["language"]))
        return {"transcripts": [dataclasses.asdict(one) for _, one in zip(clips, said, strict=True)]}
    except Exception as error:  # noqa: BLE001  # whatever it is, the parent is told
        return _trouble(error)


def _trouble(error: Exception) -> dict[str, object]:
    if isinstance(error, AmharicTtsError):
        return {"error": error.message, "hint": error.hint}
    traceback.print_exception(error)
    return {"fault": f"{type(error).__name__}: {error}"}


def _send(replies: IO[bytes], reply: dict[str, object]) -> None:
    replies.write(json.dumps(reply).encode() + b"\n")
    replies.flush()


def _own_output() -> IO[bytes]:
    """Keep the pipe for replies; whatever a library prints goes to the log."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return replies


def _leave_with(parent: int, recorded: str) -> None:
    """End this process once its parent is gone, also in the midst of work or when another holds the pipe open."""
    while is_alive(parent, recorded):
        time.sleep(LOOK_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    serve(sys.stdin.buffer, _own_output())
