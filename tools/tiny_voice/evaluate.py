"""Measure the embedded voice: are unseen sentences understood, do they end, how long are they, how fast do they come.

What was spoken is compared with espeak-ng's own rendering of the same sentences, so espeak-ng has to be installed.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from utils.cli import demo
from utils.core.errors import ConfigError, RunError
from utils.core.paths import TINY_MODEL, Project
from utils.core.storage import write_atomically


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the voice, and how much it has to say."""
    parser.add_argument(
        "--model", type=Path, default=TINY_MODEL, help="folder of the voice (default: the embedded one)"
    )
    parser.add_argument("--sentences", type=int, default=200, help="sentences that are spoken (default: 200)")
    parser.add_argument("--retrieved", type=int, default=50, help="of them, compared with each other (default: 50)")
    parser.add_argument("--voices", type=int, default=2, help="trained voices that speak in turn (default: 2)")
    parser.add_argument(
        "--fine-tune",
        type=Path,
        metavar="FOLDER",
        help="also teach it the speaker of the sample recording, in a project in this folder, and measure that",
    )
    parser.add_argument(
        "--settings", type=Path, default=demo.PRESET, help="how to fine-tune (default: configs/tiny_cpu.yaml)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")


def run(arguments: argparse.Namespace) -> int:
    """Speak, compare and print."""
    if min(arguments.sentences, arguments.retrieved, arguments.voices) < 1:
        raise ConfigError("There is nothing to measure.", hint="Give numbers of 1 or more.")
    from tools.tiny_voice import report
    from tools.tiny_voice.measure import measure
    from tools.tiny_voice.progress import Progress
    from tools.tiny_voice.recipe import Checks

    settings = Checks(arguments.retrieved, arguments.sentences, arguments.voices)
    place = demo.new_project(arguments.fine_tune) if arguments.fine_tune else None
    figures = measure(arguments.model, settings, Progress("evaluate", tell))
    print(report.checked(figures))
    keep(figures, arguments.json)
    if place:
        figures["tuned"] = fine_tuned(arguments.model, place, arguments.settings, arguments.retrieved)
        print(report.tuned(figures["tuned"]))
        keep(figures, arguments.json)
    return 0


def keep(figures: dict[str, Any], file: Path | None) -> None:
    """Write the figures that there are by now."""
    if file:
        write_atomically(file, json.dumps(figures, indent=1))


def fine_tuned(model: Path, place: Project, settings: Path, sentences: int) -> dict[str, Any]:
    """Do what the demonstration does, with this voice, and compare it with what came of it."""
    from tools.tiny_voice.fine_tuning import compare
    from tools.tiny_voice.progress import Progress

    config = demo.settings(settings, place).model_copy(update={"custom_model": str(model.resolve())})
    if demo.prepare_and_train(place, config) is None:
        raise RunError("The fine-tuning did not come to its end.", hint="What it said above tells why.")
    return compare(model, place.ready, demo.reference_clip(place), sentences, Progress("compare", tell))


def tell(sentence: str) -> None:
    """Write a line beside the figures."""
    sys.stderr.write(f"{sentence}\n")
