"""The child process of an ``IsolatedRecogniser``: loads the model, then answers requests until the pipe closes.

A request is a line of JSON, {"language", "lengths"}, and the samples of its clips as little-endian float32. A reply is
a line of JSON: {"device"} once, then {"transcripts"}; or {"error", "hint"}, or {"failure"}.
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
from utils.dataset.recognisers import LoadedRecogniser, RecogniserSpec
from utils.runs.processes import is_alive

POLL_SECONDS = 1.0


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Load the recogniser that the first request describes and answer the others."""
    first = json.loads(requests.readline())
    threading.Thread(target=_exit_with_parent, args=(first["parent"], first["identity"]), daemon=True).start()
    try:
        recogniser = _load(RecogniserSpec(**first["spec"]))
    except Exception as error:  # noqa: BLE001  # the parent reports it
        _send(replies, _error_reply(error))
        return
    _send(replies, {"device": recogniser.device})
    while line := requests.readline():
        _send(replies, _reply(recogniser, json.loads(line), requests))


def _load(spec: RecogniserSpec) -> LoadedRecogniser:
    module, _, name = spec.factory.partition(":")
    recogniser: LoadedRecogniser = getattr(importlib.import_module(module), name)(spec)
    return recogniser


def _reply(recogniser: LoadedRecogniser, request: dict[str, object], samples: IO[bytes]) -> dict[str, object]:
    lengths: list[int] = request["lengths"]  # type: ignore[assignment]
    clips = [np.frombuffer(samples.read(4 * length), "<f4").astype(np.float32) for length in lengths]
    try:
        transcripts = recogniser.transcribe(clips, str(request["language"]))
        return {"transcripts": [dataclasses.asdict(one) for _, one in zip(clips, transcripts, strict=True)]}
    except Exception as error:  # noqa: BLE001  # the parent reports it
        return _error_reply(error)


def _error_reply(error: Exception) -> dict[str, object]:
    if isinstance(error, AmharicTtsError):
        return {"error": error.message, "hint": error.hint}
    traceback.print_exception(error)
    return {"failure": f"{type(error).__name__}: {error}"}


def _send(replies: IO[bytes], reply: dict[str, object]) -> None:
    replies.write(json.dumps(reply).encode() + b"\n")
    replies.flush()


def _reserve_stdout() -> IO[bytes]:
    """Keep the pipe for replies; whatever a library prints goes to the log."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return replies


def _exit_with_parent(pid: int, recorded: str) -> None:
    """End this process when its parent is gone, even if it is busy or another process holds the pipe open."""
    while is_alive(pid, recorded):
        time.sleep(POLL_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    serve(sys.stdin.buffer, _reserve_stdout())
