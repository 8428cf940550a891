"""Make the embedded voice from nothing: synthetic Amharic speech, codes, GPT, vocoder, and the figures about it.

Hours on two CPU cores, minutes on a GPU. The same command again goes on where it was stopped or killed; a stage whose
inputs have not changed is not done twice.

python -m tools.tiny_voice build
python -m tools.tiny_voice build --stages corpus audio dvae
python -m tools.tiny_voice build --recipe toy --output /tmp/toy
"""

import argparse
import time
from pathlib import Path
from typing import get_args

from utils.config import SpeechConfig
from utils.config.flags import EXIT_INTERRUPTED
from utils.core.paths import ROOT, TINY_VOICE

DOCUMENT = ROOT / "docs" / "embedded-voice.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take where to work, on what, and how far."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--output", type=Path, default=TINY_VOICE, help="folder of all stages")
    parser.add_argument(
        "--recipe", choices=["full", "toy"], default="full", help="toy: a minute, to try the way itself"
    )
    parser.add_argument(
        "--device",
        choices=get_args(SpeechConfig.model_fields["device"].annotation),
        default="auto",
        help="where to compute (default: auto, a GPU where there is one)",
    )
    parser.add_argument("--stages", nargs="+", default=[], metavar="STAGE", help="only these, in their order")
    parser.add_argument(
        "--document", action="store_true", help=f"write the figures into {DOCUMENT.relative_to(ROOT)} too"
    )


def run(arguments: argparse.Namespace) -> int:
    """Work through the stages in the foreground."""
    from tools.tiny_voice import report, stages
    from tools.tiny_voice.assemble import voice_folder
    from tools.tiny_voice.build import STAGES
    from tools.tiny_voice.recipe import RECIPES
    from utils.xtts.codec import choose_device

    root = arguments.output.resolve()
    shop = stages.Workshop(root, RECIPES[arguments.recipe], choose_device(arguments.device), tell)
    try:
        stages.run(shop, STAGES, arguments.stages)
    except KeyboardInterrupt:
        print("Stopped. The same command goes on from what was saved last.")
        return EXIT_INTERRUPTED
    figures = report.figures_of(root)
    print(figures)
    if arguments.document:
        report.write_into(DOCUMENT, figures)
    print(voice_folder(root))
    return 0


def tell(sentence: str) -> None:
    """Write a line with the time of day."""
    print(f"{time.strftime('%H:%M:%S')}  {sentence}", flush=True)
