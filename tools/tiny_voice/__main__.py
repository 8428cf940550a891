"""Build the embedded voice from synthetic Amharic speech, or evaluate it.

python -m tools.tiny_voice build                               # hours on two CPU cores, minutes on a GPU
python -m tools.tiny_voice build --stages corpus audio dvae
python -m tools.tiny_voice build --recipe toy --output /tmp/toy
python -m tools.tiny_voice build --recipe short --continue-from utils/xtts/data/tiny
python -m tools.tiny_voice evaluate
python -m tools.tiny_voice judge --json figures.json           # trains an independent phone recogniser first

Run ``build`` again to continue an interrupted build; finished stages are skipped. All commands need espeak-ng.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from tools.tiny_voice.espeak import EspeakError
from tools.tiny_voice.recipe import RECIPES, Checks
from utils.cli import demo
from utils.config import SpeechConfig
from utils.core.errors import EXIT_INTERRUPTED, AmharicTtsError
from utils.core.paths import TINY_MODEL
from utils.core.storage import write_atomically
from utils.studio.paths import TINY_VOICE, Project


def main(words: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.tiny_voice",
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    _add_build(commands.add_parser("build", allow_abbrev=False))
    _add_evaluate(commands.add_parser("evaluate", allow_abbrev=False))
    _add_judge(commands.add_parser("judge", allow_abbrev=False))
    arguments = parser.parse_args(words)
    try:
        return int(arguments.run(arguments))
    except (AmharicTtsError, EspeakError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1


def _add_build(parser: argparse.ArgumentParser) -> None:
    devices = get_args(SpeechConfig.model_fields["device"].annotation)
    parser.add_argument("--output", type=Path, default=TINY_VOICE, help="folder of all stages")
    parser.add_argument("--recipe", choices=list(RECIPES), default="full", help="toy: a test build in a minute")
    parser.add_argument("--continue-from", type=Path, metavar="FOLDER", help="start from the weights of this voice")
    parser.add_argument("--device", choices=devices, default="auto", help="device (default: auto)")
    parser.add_argument("--stages", nargs="+", default=[], metavar="STAGE", help="only these stages")
    parser.set_defaults(run=build)


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", type=Path, default=TINY_MODEL, help="model folder (default: the embedded voice)")
    parser.add_argument("--sentences", type=int, default=200, help="number of sentences (default: 200)")
    parser.add_argument("--retrieved", type=int, default=50, help="sentences compared with each other (default: 50)")
    parser.add_argument("--voices", type=int, default=2, help="number of speakers (default: 2)")
    parser.add_argument(
        "--fine-tune",
        type=Path,
        metavar="FOLDER",
        help="also fine-tune it on the sample recording, in a project in this folder, and evaluate that",
    )
    parser.add_argument(
        "--settings", type=Path, default=demo.PRESET, help="training YAML (default: configs/tiny_cpu.yaml)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    parser.set_defaults(run=evaluate)


def _add_judge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", type=Path, default=TINY_MODEL, help="model folder (default: the embedded voice)")
    parser.add_argument("--sentences", type=int, default=60, help="number of unseen sentences (default: 60)")
    parser.add_argument("--versions", type=int, default=1, help="versions per sentence; the best is used (default: 1)")
    parser.add_argument("--work", type=Path, default=TINY_VOICE / "judges", help="folder of the trained recogniser")
    parser.add_argument("--fine-tune", action="store_true", help="also fine-tune it on three held-out speakers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    parser.set_defaults(run=judge)


def build(arguments: argparse.Namespace) -> int:
    """Run the stages."""
    from tools.tiny_voice import report, stages
    from tools.tiny_voice.build import STAGES
    from tools.tiny_voice.continuing import continued_recipe
    from tools.tiny_voice.voice import voice_folder
    from utils.xtts.device import choose_device

    root = arguments.output.resolve()
    device = choose_device(arguments.device)
    recipe, base = RECIPES[arguments.recipe], arguments.continue_from
    if base:
        recipe = continued_recipe(recipe, base)
    context = stages.BuildContext(root, recipe, device, _print_with_time, base and base.resolve())
    try:
        stages.run(context, STAGES, arguments.stages)
    except KeyboardInterrupt:
        print("Stopped. Run the same command again to continue.")
        return EXIT_INTERRUPTED
    print(report.report_of(root))
    print(voice_folder(root))
    return 0


def evaluate(arguments: argparse.Namespace) -> int:
    """Evaluate a voice, and optionally a fine-tuning of it."""
    if min(arguments.sentences, arguments.retrieved, arguments.voices) < 1:
        raise SystemExit("--sentences, --retrieved and --voices must be at least 1.")
    from tools.tiny_voice import report
    from tools.tiny_voice.checks import measure
    from tools.tiny_voice.stages import Progress

    checks = Checks(arguments.retrieved, arguments.sentences, arguments.voices)
    project = demo.new_project(arguments.fine_tune) if arguments.fine_tune else None
    results = measure(arguments.model, checks, Progress("evaluate", _print_to_stderr))
    print(report.checked(results))
    _write_json(results, arguments.json)
    if project:
        results["tuned"] = _fine_tune(arguments.model, project, arguments.settings, arguments.retrieved)
        print(report.tuned(results["tuned"]))
        _write_json(results, arguments.json)
    return 0


def judge(arguments: argparse.Namespace) -> int:
    """Measure a voice with independent judges."""
    from tools.tiny_voice import judges, report
    from tools.tiny_voice.stages import Progress

    progress = Progress("judge", _print_to_stderr)
    work = arguments.work.resolve()
    results = judges.judge(arguments.model, work, arguments.sentences, arguments.versions, progress)
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


def _fine_tune(model: Path, project: Project, settings: Path, sentences: int) -> dict[str, Any]:
    """Fine-tune the voice as the demo does, and compare the two."""
    from tools.tiny_voice.checks import compare_fine_tuned
    from tools.tiny_voice.stages import Progress

    config = demo.settings(settings, project).model_copy(update={"custom_model": str(model.resolve())})
    demo.prepare_and_train(project, config)
    reference = demo.reference_clip(project)
    return compare_fine_tuned(model, project.ready, reference, sentences, Progress("compare", _print_to_stderr))


def _write_json(results: dict[str, Any], file: Path | None) -> None:
    if file:
        write_atomically(file, json.dumps(results, indent=1))


def _print_with_time(message: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {message}", flush=True)


def _print_to_stderr(message: str) -> None:
    sys.stderr.write(f"{message}\n")


if __name__ == "__main__":
    sys.exit(main())
