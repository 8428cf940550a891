"""List, add or remove the pronunciations of a project; training, preview and speech use them."""

import argparse

from utils.cli.runs import add_project, chosen_project
from utils.xtts.pronunciations import add_pronunciation, read_pronunciations


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Without arguments, the list is printed. The file is pronunciations.tsv in the project folder."
    parser.add_argument("written", nargs="?", default="", help="word, acronym or phrase as it is in the text")
    parser.add_argument("spoken", nargs="?", default="", help="Ethiopic letters (ː after long consonants) or phonemes")
    parser.add_argument("--note", default="", help="a note, such as the reason or source")
    parser.add_argument("--remove", action="store_true", help="remove the pronunciation of the written form")
    parser.add_argument("--language", default="am", help="language name or code (default: am)")
    add_project(parser)


def run(arguments: argparse.Namespace) -> int:
    opened = chosen_project(arguments)
    if arguments.written and (arguments.spoken or arguments.remove):
        spoken = "" if arguments.remove else arguments.spoken
        heard = add_pronunciation(
            opened.pronunciations, arguments.written, spoken, arguments.note, language=arguments.language
        )
        print(f"{arguments.written}\t{heard}")
        return 0
    for entry in read_pronunciations(opened.pronunciations):
        if arguments.written in {"", entry.written}:
            print("\t".join(entry).rstrip())
    return 0
