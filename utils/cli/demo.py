"""Run the whole workflow on a bundled recording: prepare, fine-tune the embedded voice, speak and compare.

It needs no internet and no GPU, and takes a few minutes. The embedded voice learns the speaker of the recording and
speaks three new sentences. Audio files and a page (demo.html) are written to the project "demo"; running the command
again starts over.
"""

import argparse
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from utils import runs
from utils.cli.runs import follow
from utils.config import DatasetConfig, SpeechConfig, TrainConfig
from utils.core import languages
from utils.core.errors import RunError
from utils.core.paths import CONFIGS, OUTPUT, Project
from utils.workspace import projects, sample_project
from utils.xtts.files import TINY

if TYPE_CHECKING:
    from utils.config import Config
    from utils.evaluation.report import EvaluationReport

NAME = "demo"
FOLDER = "evaluation"
DISCLAIMER = (
    "The recording was generated with espeak-ng. The model is the small embedded voice of this program, trained on "
    "other voices of espeak-ng; it is not XTTS v2. This page shows the workflow, not the quality of XTTS v2."
)
PRESET = CONFIGS / "tiny_cpu.yaml"
SENTENCES = (  # none of them is in the recording
    "ሰላም፣ እኔ የአማርኛ ድምፅ ነኝ።",
    "ዛሬ አዲስ አበባ ውስጥ ዝናብ ጣለ።",
    "ቡና እንጠጣ ወይስ ሻይ?",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the folder of the projects and the training settings."""
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder with the projects (default: output/)")
    parser.add_argument("--settings", type=Path, default=PRESET, help="training YAML (default: configs/tiny_cpu.yaml)")


def run(arguments: argparse.Namespace) -> int:
    """Run one step after the other, each as the page does it."""
    start = time.monotonic()
    project = new_project(arguments.output)
    training = prepare_and_train(project, settings(arguments.settings, project))
    if training is None:
        return 1
    from utils.workspace.demo_report import write_page

    report, reference = speak(project, arguments.output)
    for number, result in enumerate(report.of(report.checkpoints[0]), 1):
        if result.wav:
            shutil.copyfile(report.folder / result.wav, project.root / f"sentence-{number}.wav")
    took = f"From the recording to this page it took {time.monotonic() - start:.0f} s."
    page = write_page(project, training, report, reference, [DISCLAIMER, took])
    print(f"\n{took}\nOpen this in a browser: {page}")
    return 0


def new_project(output: Path) -> Project:
    """Create the project with its recording; an earlier demo goes to the trash."""
    if (earlier := output / NAME).exists():
        if not (Project(earlier).dataset / sample_project.UPLOADS / sample_project.AUDIO_FILE).is_file():
            raise RunError(
                f"{earlier} is a project of your own; the demo would replace it.",
                hint="Choose another folder with --output, or rename your project.",
            )
        projects.delete(projects.find(NAME, output), output)
    return sample_project.create(output, NAME)


def settings(file: Path, project: Project) -> TrainConfig:
    """Load training settings and enable three optimizations; each does what this computer supports."""
    switches = dict.fromkeys(("enable_grad_checkpoint", "enable_sdpa", "enable_mixed_precision"), True)
    return TrainConfig.load(file).model_copy(update={"output_path": str(project.root.resolve()), **switches})


def prepare_and_train(project: Project, config: TrainConfig) -> runs.Run | None:
    """Prepare the recording and train on it; None when a run stopped or failed."""
    prepared = run_verb("prepare", DatasetConfig(inputs=str(project.dataset / sample_project.UPLOADS)), project)
    return run_verb("train", config, project) if prepared else None


def run_verb(verb: str, config: "Config", project: Project) -> runs.Run | None:
    """Start a run and follow it; None when it stopped or failed."""
    print(f"\n{verb} …", flush=True)
    started = runs.start(verb, config, project)
    return None if follow(started) else started


def speak(project: Project, output: Path) -> "tuple[EvaluationReport, Path]":
    """Let the fine-tuned model and its base speak the sentences in the voice of a clip."""
    from utils.evaluation.candidates import candidates
    from utils.evaluation.evaluate import evaluate
    from utils.evaluation.sentences import EvaluationSentence

    reference = reference_clip(project)
    sentences = [EvaluationSentence(text, languages.AMHARIC.code, reference=str(reference)) for text in SENTENCES]
    models = candidates([str(project.ready), TINY], SpeechConfig(), output)
    return evaluate(models, sentences, project.root / FOLDER, SpeechConfig()), reference


def reference_clip(project: Project) -> Path:
    """Choose a clip of the recording as the reference."""
    from utils.dataset.metadata import FILES
    from utils.evaluation.sentences import sentences_from_clips

    return Path(sentences_from_clips(project.dataset / FILES["train"], languages.AMHARIC.code)[0].reference)
