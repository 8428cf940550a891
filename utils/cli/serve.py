"""Speak for other programs over HTTP, in the way of OpenAI's speech API.

Only this computer is served, unless --host says otherwise and an API key is set.
"""

import argparse
import sys
from typing import TYPE_CHECKING

from utils.config import ServeConfig
from utils.config.flags import add_flags, read_flags

if TYPE_CHECKING:
    from utils.server.queue import Speaks

CONFIG = ServeConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the model, the address and the limits."""
    add_flags(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    """Serve until somebody stops it."""
    from utils.server.run import serve

    config = read_flags(arguments, CONFIG)
    serve(config, lambda: load(config), announce)
    return 0


def announce(address: str) -> None:
    """Say where the server is, at once even into a pipe."""
    print(f"Speech is served at {address}/v1/audio/speech; {address}/docs says how.")
    sys.stdout.flush()


def load(config: ServeConfig) -> "Speaks":
    """Load the model and say what should be known about it."""
    from utils.speech.synthesizer import Synthesizer

    found = Synthesizer.load(config.model, config.device, config.precision)
    for notice in found.model.notices:
        print(f"Notice: {notice}")
    print(f"{found.model.name} is ready.")
    sys.stdout.flush()
    return found
