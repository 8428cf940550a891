"""Make the training pack of the embedded voice, or a voice of what it trained, or judge one.

python -m tools.tiny_voice pack .voice-kit                     # a folder for a machine with a GPU, or for idle cores
python -m tools.tiny_voice assemble TRAINED FOLDER             # the voice with what the pack trained
python -m tools.tiny_voice judge --json figures.json           # how well it speaks

All commands need espeak-ng, and ``pack`` a C compiler.
"""

import argparse
import json
import sys
from pathlib import Path

from tools.tiny_voice.espeak import EspeakError
from tools.tiny_voice.speakers import JUDGED
from utils.core.errors import AmharicTtsError
from utils.core.paths import TINY_MODEL
from utils.core.storage import write_atomically
from utils.recognition.phone_recogniser import EMBEDDED
from utils.studio.paths import TINY_VOICE


def main() -> int:
    """Run a command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.tiny_voice",
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    packing, assembling, judging = (
        commands.add_parser(name, allow_abbrev=False) for name in ("pack", "assemble", "judge")
    )
    for command in (packing, assembling, judging):
        command.add_argument("--model", type=Path, default=TINY_MODEL, help="voice (default: the embedded one)")
    packing.add_argument("folder", type=Path, help="folder of the pack")
    packing.set_defaults(run=pack)
    assembling.add_argument("trained", type=Path, help="folder that the pack wrote its results to")
    assembling.add_argument("folder", type=Path, help="folder of the voice")
    assembling.set_defaults(run=assemble)
    judging.add_argument("--sentences", type=int, default=60, help="number of unseen sentences (default: 60)")
    judging.add_argument("--speakers", nargs="+", default=JUDGED, help="who speaks them in turn (default: %(default)s)")
    judging.add_argument(
        "--versions", type=int, default=1, help="versions of a sentence; the best is used (default: 1)"
    )
    judging.add_argument("--recogniser", type=Path, default=EMBEDDED, help="weights of the phone recogniser")
    judging.add_argument("--fine-tune", action="store_true", help="also fine-tune it on three held-out speakers")
    judging.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    judging.set_defaults(run=judge)
    arguments = parser.parse_args()
    try:
        arguments.run(arguments)
    except (AmharicTtsError, EspeakError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return 0


def pack(arguments: argparse.Namespace) -> None:
    """Write the training pack."""
    from tools.tiny_voice.pack import write_pack

    write_pack(arguments.model, arguments.folder)


def assemble(arguments: argparse.Namespace) -> None:
    """Write a voice from what was trained."""
    from tools.tiny_voice.assemble import assemble as write_voice

    write_voice(arguments.model, arguments.trained, arguments.folder)


def judge(arguments: argparse.Namespace) -> None:
    """Measure a voice."""
    from tools.tiny_voice import judge as judging

    work, count, versions = TINY_VOICE / "judges", arguments.sentences, arguments.versions
    found = judging.judge(arguments.model, work, count, versions, arguments.speakers, arguments.recogniser)
    print(judging.table(found, f"{count} unseen sentences"))
    results: dict[str, object] = {"sentences": count, **found}
    if arguments.fine_tune:
        tuned = judging.judge_fine_tunings(arguments.model, work, count, versions, arguments.recogniser)
        for speaker, figures in tuned.items():
            print(judging.table(figures, speaker))
        results["fine_tuned"] = tuned
    if arguments.json:
        write_atomically(arguments.json, json.dumps(results, indent=1))


if __name__ == "__main__":
    sys.exit(main())
