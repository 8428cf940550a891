"""Choose sentences to read into a microphone, so that few of them hold every sound."""

import argparse
from pathlib import Path

from utils.cli.runs import add_project
from utils.core.paths import project


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take how many sentences, and where their list goes."""
    parser.epilog = (
        "With --list: record each sentence under the file name that the list gives it, beside the list; then "
        "python -m utils prepare FILE.csv takes them in. What the project holds already is not asked for again."
    )
    add_project(parser)
    parser.add_argument("--count", type=int, default=50, help="how many sentences (default: 50)")
    parser.add_argument("--speaker", default="speaker", help="who will read (default: speaker)")
    parser.add_argument("--list", type=Path, metavar="FILE.csv", help="write a list for recording them")


def run(arguments: argparse.Namespace) -> int:
    """Print the sentences, or write them as a list that `prepare` reads."""
    from utils.core.storage import write_atomically
    from utils.dataset import prompts
    from utils.dataset.store import Store

    dataset = project(arguments.project, arguments.output).dataset
    read = [clip.text for clip in Store(dataset).read().kept]
    sentences = prompts.choose(arguments.count, read=read)
    if arguments.list:
        rows = [f"prompt_{number:03}.wav|{text}|{arguments.speaker}" for number, text in enumerate(sentences, start=1)]
        write_atomically(arguments.list, "\n".join(["audio_file|text|speaker_name", *rows]) + "\n")
        print(f"{len(rows)} sentences are listed in {arguments.list}.")
    else:
        print("\n".join(sentences))
    missing = prompts.coverage([*read, *sentences]).missing
    print(f"Sounds that are still missing: {' '.join(missing)}" if missing else "Together they hold every sound.")
    return 0
