"""Make the training pack of the embedded voice, or a voice of what it trained, or judge one.

python -m tools.tiny_voice pack .voice-kit                     # a folder for a machine with a GPU, or for idle cores
python -m tools.tiny_voice assemble TRAINED FOLDER             # the voice with what the pack trained
python -m tools.tiny_voice judge --json figures.json           # trains an independent phone recogniser first

All commands need espeak-ng, and ``pack`` a C compiler.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.tiny_voice.espeak import EspeakError
from tools.tiny_voice.speakers import JUDGED
from utils.cli import demo
from utils.core.errors import AmharicTtsError
from utils.core.paths import TINY_MODEL
from utils.core.storage import write_atomically
from utils.studio.paths import TINY_VOICE


def main(words: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.tiny_voice",
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    _add_pack(commands.add_parser("pack", allow_abbrev=False))
    _add_assemble(commands.add_parser("assemble", allow_abbrev=False))
    _add_judge(commands.add_parser("judge", allow_abbrev=False))
    arguments = parser.parse_args(words)
    try:
        return int(arguments.run(arguments))
    except (AmharicTtsError, EspeakError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1


def _add_pack(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="folder of the pack")
    parser.add_argument(
        "--model", type=Path, default=TINY_MODEL, help="voice to start from (default: the embedded one)"
    )
    parser.set_defaults(run=pack)


def _add_assemble(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trained", type=Path, help="folder that the pack wrote its results to")
    parser.add_argument("folder", type=Path, help="folder of the voice")
    parser.add_argument("--model", type=Path, default=TINY_MODEL, help="voice that the rest is taken from")
    parser.set_defaults(run=assemble)


def _add_judge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", type=Path, default=TINY_MODEL, help="model folder (default: the embedded voice)")
    parser.add_argument("--sentences", type=int, default=60, help="number of unseen sentences (default: 60)")
    parser.add_argument("--speakers", nargs="+", default=JUDGED, help="who speaks them in turn (default: %(default)s)")
    parser.add_argument("--versions", type=int, default=1, help="versions per sentence; the best is used (default: 1)")
    parser.add_argument("--work", type=Path, default=TINY_VOICE / "judges", help="folder of the trained recogniser")
    parser.add_argument("--fine-tune", action="store_true", help="also fine-tune it on three held-out speakers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    parser.set_defaults(run=judge)


def pack(arguments: argparse.Namespace) -> int:
    """Write the training pack."""
    from tools.tiny_voice.pack import write_pack
    from tools.tiny_voice.progress import Progress

    write_pack(arguments.model, arguments.folder, Progress("pack", _print_to_stderr))
    return 0


def assemble(arguments: argparse.Namespace) -> int:
    """Write a voice from what was trained."""
    from tools.tiny_voice.assemble import assemble as write_voice

    write_voice(arguments.model, arguments.trained, arguments.folder)
    return 0


def judge(arguments: argparse.Namespace) -> int:
    """Measure a voice with independent judges."""
    from tools.tiny_voice import judges, report
    from tools.tiny_voice.progress import Progress

    progress = Progress("judge", _print_to_stderr)
    work = arguments.work.resolve()
    results = judges.judge(arguments.model, work, arguments.sentences, arguments.versions, progress, arguments.speakers)
    print(report.judged(results))
    _write_json(results, arguments.json)
    if arguments.fine_tune:
        from tools.tiny_voice.fine_tuning import judge_fine_tunings

        amounts = arguments.sentences, arguments.versions
        tuned = judge_fine_tunings(arguments.model, work, demo.PRESET, *amounts, progress)
        results["fine_tuned"] = tuned
        print(json.dumps(tuned, indent=1))
        _write_json(results, arguments.json)
    return 0


def _write_json(results: dict[str, Any], file: Path | None) -> None:
    if file:
        write_atomically(file, json.dumps(results, indent=1))


def _print_to_stderr(message: str) -> None:
    sys.stderr.write(f"{message}\n")


if __name__ == "__main__":
    sys.exit(main())
