"""Let models speak the same sentences and measure them: wrong words, voice, length, doubtful sounds, speed.

Sounds, tables and a picture go into one folder. The same command again goes on where it was, and with --asr it listens
to what was spoken before. Press Ctrl-C at any time: what is finished can be read.
"""

import argparse
import dataclasses
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from utils.cli.runs import CLEAR, progress_bar
from utils.config import SpeechConfig
from utils.config.flags import EXIT_INTERRUPTED, add_flags, read_flags
from utils.core.errors import ConfigError
from utils.core.paths import OUTPUT, project

if TYPE_CHECKING:
    from utils.evaluation.evaluate import EvaluationProgress, Hearing
    from utils.evaluation.utterance import TestSentence

FOLDER = "evaluation"
CTC = "ctc:"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the models, what they say, who listens, and how they speak."""
    parser.add_argument("--checkpoints", nargs="+", default=[], metavar="MODEL", help="models, runs or checkpoints")
    said = parser.add_mutually_exclusive_group()
    said.add_argument("--sentences", type=Path, metavar="FILE", help="a sentence a line, or a list of clips")
    said.add_argument("--project", default="", help="take the held-back clips of this project; else sentences of ours")
    parser.add_argument("--count", type=int, default=50, help="most sentences, spread over all (default: 50)")
    parser.add_argument(
        "--asr", default="", metavar="MODEL", help=f"Whisper size or folder that listens, or {CTC}MODEL; empty: nobody"
    )
    parser.add_argument("--out", type=Path, help="folder of the report (default: evaluation/ in the project)")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder of the projects (default: output/)")
    add_flags(parser, SpeechConfig)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate in the foreground and print the report."""
    config = read_flags(arguments, SpeechConfig)
    if arguments.checkpoints and config.model:
        raise ConfigError("Models are named twice.", hint="Use --checkpoints alone.")
    if arguments.count < 1:
        raise ConfigError(f"--count {arguments.count} leaves no sentence.", hint="Give 1 or more.")
    sentences = chosen(arguments, config)
    folder = arguments.out or _folder(arguments)
    from utils.evaluation.candidates import candidates
    from utils.evaluation.evaluate import evaluate
    from utils.evaluation.report import load, text

    models = candidates(arguments.checkpoints or [config.model], config, arguments.output)
    with ExitStack() as stack:
        try:
            report = evaluate(models, sentences, folder, config, hearing(arguments.asr, config, stack), tell)
        except KeyboardInterrupt:
            print(f"{clear()}Interrupted. What is finished:\n\n{text(load(folder))}\n\n{folder}", flush=True)
            return EXIT_INTERRUPTED
    print(f"{clear()}{text(report)}\n\n{folder}")
    return 0


def chosen(arguments: argparse.Namespace, config: SpeechConfig) -> "list[TestSentence]":
    """Return what is spoken: a file, the held-back clips of a project, or sentences of ours."""
    from utils.dataset.coqui_lists import FILES, read_language
    from utils.evaluation import sentences

    if arguments.sentences:
        found = sentences.sentences_from_file(arguments.sentences, config.language)
    elif arguments.project:
        dataset = project(arguments.project, arguments.output).dataset
        language = config.language if "language" in arguments else read_language(dataset)
        found = sentences.sentences_from_clips(dataset / FILES["eval"], language, arguments.count)
    else:
        found = sentences.built_in_sentences(config.language)
    found = sentences.evenly_spaced(found, arguments.count)
    return [dataclasses.replace(one, reference=config.reference or one.reference) for one in found]


def hearing(model: str, config: SpeechConfig, stack: ExitStack) -> "Hearing":
    """Name who listens, in a process of its own that starts when all models have spoken."""
    from utils.dataset.recogniser_process import Isolated
    from utils.dataset.transcription import CTC as CTC_FACTORY
    from utils.dataset.transcription import WHISPER, Engine
    from utils.evaluation.evaluate import Hearing

    if not model:
        return Hearing()
    factory = CTC_FACTORY if model.startswith(CTC) else WHISPER
    engine = Engine(model.removeprefix(CTC), config.device, factory=factory)
    return Hearing(stack.enter_context(Isolated(engine, warn=lambda sentence: print(sentence, file=sys.stderr))))


def tell(progress: "EvaluationProgress") -> None:
    """Show how far it is: on a terminal as a bar that stays in its line."""
    if sys.stdout.isatty():
        bar = progress_bar({"step": progress.step, "total": progress.total})
        print(f"{CLEAR}{bar}  {progress.stage}", end="", flush=True)
    else:
        print(f"{progress.step} of {progress.total}  {progress.stage}  {progress.text}".rstrip(), flush=True)


def clear() -> str:
    """Return what empties the line of the bar."""
    return CLEAR if sys.stdout.isatty() else ""


def _folder(arguments: argparse.Namespace) -> Path:
    """Return where the report goes: the same folder each time, so that nothing is measured twice."""
    if arguments.project:
        return project(arguments.project, arguments.output).root / FOLDER
    whole: Path = arguments.output
    return whole / f".{FOLDER}"  # a name that no project can have
