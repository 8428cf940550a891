"""Choose sentences to record that together contain every sound of Amharic."""

import argparse
from pathlib import Path

from utils.cli.runs import add_project, chosen_project
from utils.core.storage import write_atomically
from utils.dataset import prompts
from utils.dataset.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "With --list, record each sentence to the file name in the list, in the same folder; then import them with "
        "python -m utils prepare FILE.csv. Sentences that the project already has are left out."
    )
    add_project(parser)
    parser.add_argument("--count", type=int, default=50, help="number of sentences (default: 50)")
    parser.add_argument("--speaker", default="speaker", help="speaker name (default: speaker)")
    parser.add_argument("--list", type=Path, metavar="FILE.csv", help="write a list for recording")


def run(arguments: argparse.Namespace) -> int:
    read = [clip.text for clip in Store(chosen_project(arguments).dataset).read().kept]
    sentences = prompts.choose(arguments.count, read=read)
    if arguments.list:
        rows = [f"prompt_{number:03}.wav|{text}|{arguments.speaker}" for number, text in enumerate(sentences, start=1)]
        write_atomically(arguments.list, "\n".join(["audio_file|text|speaker_name", *rows]) + "\n")
        print(f"{len(rows)} sentences written to {arguments.list}.")
    else:
        print("\n".join(sentences))
    missing = prompts.missing_sounds([*read, *sentences])
    print(f"Missing sounds: {' '.join(missing)}" if missing else "The sentences contain every sound.")
    return 0
