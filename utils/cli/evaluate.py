"""Evaluate models on the same sentences: error rates, voice similarity, length, warnings and speed.

Audio and tables are written to one folder. Run the same command again to continue an interrupted evaluation, or
with --asr to transcribe what was spoken before. Press Ctrl-C at any time; finished results are kept.
"""

import argparse
import dataclasses
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from utils.cli.runs import add_output, chosen_project
from utils.config import SpeechConfig
from utils.config.flags import add_flags, read_flags
from utils.core import facts, wording
from utils.core.batching import evenly_spaced
from utils.core.errors import EXIT_INTERRUPTED
from utils.core.facts import Fact, Report, ShouldStop, never_stop
from utils.dataset.metadata import FILES, read_language, write_lists
from utils.recognition.recognisers import Device
from utils.recognition.recognisers.choice import CTC_PREFIX
from utils.recognition.recognisers.isolated import IsolatedRecogniser, open_recogniser
from utils.studio.facts import UsageError
from utils.studio.loading import chosen_voice
from utils.studio.models import find_model
from utils.studio.progress import CLEAR, describe_progress

if TYPE_CHECKING:
    from utils.evaluation.evaluate import Candidate
    from utils.evaluation.sentences import EvaluationSentence


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--checkpoints", nargs="+", default=[], metavar="MODEL", help="models, runs or checkpoints")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--sentences", type=Path, metavar="FILE", help="one sentence per line, or a metadata list")
    source.add_argument("--project", default="", help="held-out clips of this project (default: built-in sentences)")
    parser.add_argument("--count", type=int, default=50, help="maximum number of sentences (default: 50)")
    parser.add_argument(
        "--asr", default="", metavar="MODEL", help=f"recogniser: Whisper model, or {CTC_PREFIX}MODEL (default: none)"
    )
    parser.add_argument("--out", type=Path, help="folder of the report (default: evaluation/ in the project)")
    add_output(parser)
    add_flags(parser, SpeechConfig)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate in the foreground and print the report."""
    return perform(arguments, print_progress, never_stop)


def perform(arguments: argparse.Namespace, report: Report, should_stop: ShouldStop) -> int:
    config = read_flags(arguments, SpeechConfig)
    if arguments.checkpoints and config.model:
        raise UsageError("two_flags", "--model", "--checkpoints")
    if arguments.count < 1:
        raise UsageError("no_count", str(arguments.count))
    sentences = select_sentences(arguments, config)
    # Always the same folder, so that nothing is measured twice; .evaluation is not a valid name of a project.
    own = chosen_project(arguments).evaluation if arguments.project else arguments.output / ".evaluation"
    folder = arguments.out or own
    from utils.evaluation.evaluate import evaluate
    from utils.evaluation.report import load, text

    models = find_candidates(arguments, config)
    clear = CLEAR if sys.stdout.isatty() else ""
    try:
        with chosen_recogniser(arguments.asr, config) as recogniser:
            found = evaluate(models, sentences, folder, config, recogniser, report, should_stop)
    except KeyboardInterrupt:
        print(f"{clear}Interrupted. Finished so far:\n\n{text(load(folder))}\n\n{folder}", flush=True)
        return EXIT_INTERRUPTED
    print(f"{clear}{text(found)}\n\n{folder}")
    return 0


def chosen_recogniser(name: str, config: SpeechConfig) -> AbstractContextManager[IsolatedRecogniser | None]:
    """Return the recogniser, if one is named; it starts in its own process once all models have spoken."""
    device = cast("Device", config.device if config.device in get_args(Device) else "auto")  # not mps or xpu
    return open_recogniser(name, config.language, warn, device=device) if name else nullcontext()


def find_candidates(arguments: argparse.Namespace, config: SpeechConfig) -> "list[Candidate]":
    """Return the models; each is opened when its turn comes."""
    from utils.evaluation.evaluate import candidates

    output = arguments.output
    folders = [find_model(name, output) for name in arguments.checkpoints or [config.model]]
    return candidates(folders, lambda model: chosen_voice(config.model_copy(update={"model": str(model)}), output))


def select_sentences(arguments: argparse.Namespace, config: SpeechConfig) -> "list[EvaluationSentence]":
    """Return the sentences of a file, of a project's held-out clips, or the built-in ones."""
    from utils.evaluation import sentences

    if arguments.sentences:
        selected = sentences.sentences_from_file(arguments.sentences, config.language)
    elif arguments.project:
        dataset = chosen_project(arguments).dataset
        write_lists(dataset)
        language = config.language if "language" in arguments else read_language(dataset)
        selected = sentences.sentences_from_clips(dataset / FILES["eval"], language, arguments.count)
    else:
        selected = sentences.built_in_sentences(config.language)
    selected = evenly_spaced(selected, arguments.count)
    return [dataclasses.replace(sentence, reference=config.reference or sentence.reference) for sentence in selected]


def warn(fact: Fact) -> None:
    print(wording.describe(fact), file=sys.stderr)


def print_progress(fact: Fact) -> None:
    """Print progress; on a terminal in one line."""
    line = describe_progress(facts.to_json(fact))
    print(f"{CLEAR}{line}" if sys.stdout.isatty() else f"{line}\n", end="", flush=True)
