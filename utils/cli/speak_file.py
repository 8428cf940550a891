"""Speak subtitles into a take of a project, or each line of a text file into a numbered file of an archive."""

import argparse
from pathlib import Path

from utils.cli.runs import add_project, chosen_project
from utils.config import SpeechConfig
from utils.config.flags import add_flags, read_flags
from utils.core.facts import Report, ShouldStop, ignore, never_stop
from utils.media.encoding import format_of
from utils.studio import batch_speech
from utils.studio.loading import chosen_voice


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="subtitles, or a text file with one text per line")
    parser.add_argument("--format", default=".wav", help="format of the numbered files (default: .wav)")
    add_project(parser)
    add_flags(parser, SpeechConfig)


def run(arguments: argparse.Namespace) -> int:
    return perform(arguments, ignore, never_stop)


def perform(arguments: argparse.Namespace, report: Report, should_stop: ShouldStop) -> int:
    config = read_flags(arguments, SpeechConfig)
    opened = chosen_project(arguments)
    format_of(Path(f"x{arguments.format}"))  # before the long work
    is_subtitles = arguments.file.suffix.lower() in batch_speech.SUBTITLES
    lines = [] if is_subtitles else batch_speech.read_lines(arguments.file)
    model = chosen_voice(config, arguments.output)
    if is_subtitles:
        take = batch_speech.dub(model, opened, arguments.file, config, report, should_stop)
        print(f"{take.name}: {take.seconds:.1f} s")
        return 0
    batch = batch_speech.speak_lines(model, opened, lines, arguments.format, config, report, should_stop)
    print(f"{batch.archive}: {batch.spoken} spoken, {batch.failed} failed")
    return 0
