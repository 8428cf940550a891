"""Serve speech over HTTP with an OpenAI-compatible endpoint.

Only this computer can reach it, unless you set --host and an API key.
"""

import argparse
from typing import TYPE_CHECKING

from utils.config import ServeConfig, SpeechConfig
from utils.config.flags import add_flags, read_flags
from utils.core import wording
from utils.studio.loading import chosen_voice

if TYPE_CHECKING:
    from utils.speech.session import Check
    from utils.speech.synthesizer import Synthesizer

CONFIG = ServeConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    from utils.server.app import serve

    def announce(url: str) -> None:
        print(f"Loading the model; speech will be served at {url}/v1/audio/speech (see {url}/docs) …", flush=True)

    serve(read_flags(arguments, CONFIG), load, announce)
    return 0


def load(config: SpeechConfig, check: "Check") -> "Synthesizer":
    """Load the model and print its notices."""
    model = chosen_voice(config, on_step=check).warmed_up()
    for notice in model.model.notices:
        print(f"Notice: {wording.describe(notice)}")
    print(f"{model.model.name} is ready.", flush=True)
    return model
