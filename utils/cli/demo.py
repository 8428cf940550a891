"""Go the whole way on a recording that comes with the program: prepare, fine-tune the small model, speak, compare.

It needs no internet and no GPU, and takes a few minutes. The small voice that comes with the program learns the speaker
of the recording and says three sentences that it never saw. Sounds and a page (demo.html) go into the project "demo";
the same command again begins it anew.
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
NATURE = (
    "The recording was spoken by the program espeak-ng. The model is the small teaching voice that comes with this "
    "program: it was made from other voices of espeak-ng, and is not XTTS v2. This shows the way and what is measured "
    "on it, not what XTTS v2 can become."
)
PRESET = CONFIGS / "tiny_cpu.yaml"
SENTENCES = (  # none of them is in the recording
    "ሰላም፣ እኔ የአማርኛ ድምፅ ነኝ።",
    "ዛሬ አዲስ አበባ ውስጥ ዝናብ ጣለ።",
    "ቡና እንጠጣ ወይስ ሻይ?",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the folder of the projects."""
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder of the projects (default: output/)")
    parser.add_argument("--settings", type=Path, default=PRESET, help="how to train (default: configs/tiny_cpu.yaml)")


def run(arguments: argparse.Namespace) -> int:
    """Do one step after the other, each as the page does it."""
    begun = time.monotonic()
    place = begin_anew(arguments.output)
    training = taught(place, settings(arguments.settings, place))
    if training is None:
        return 1
    from utils.workspace.demo_report import write_page

    report, clip = speak(place, arguments.output)
    for number, one in enumerate(report.of(report.checkpoints[0]), 1):
        if one.wav:
            shutil.copyfile(report.folder / one.wav, place.root / f"sentence-{number}.wav")
    took = f"From the recording to this page it took {time.monotonic() - begun:.0f} s."
    page = write_page(place, training, report, clip, [NATURE, took])
    print(f"\n{took}\nOpen this in a browser: {page}")
    return 0


def begin_anew(output: Path) -> Project:
    """Make the project with its recording; an earlier one can be brought back for some days."""
    if (earlier := output / NAME).exists():
        if not (Project(earlier).dataset / sample_project.RECORDINGS / sample_project.SOUND).is_file():
            raise RunError(
                f"{earlier} is a project of your own, and the demonstration would take its place.",
                hint="Choose another folder with --output, or rename yours.",
            )
        projects.delete(projects.find(NAME, output), output)
    return sample_project.create(output, NAME)


def settings(file: Path, place: Project) -> TrainConfig:
    """Take the settings of a file, with three boxes ticked; each does what this computer allows."""
    boxes = dict.fromkeys(("enable_grad_checkpoint", "enable_sdpa", "enable_mixed_precision"), True)
    return TrainConfig.load(file).model_copy(update={"output_path": str(place.root.resolve()), **boxes})


def taught(place: Project, config: TrainConfig) -> runs.Run | None:
    """Prepare the recording and train on it; None when that was stopped or has failed, which was said."""
    prepared = finished("prepare", DatasetConfig(inputs=str(place.dataset / sample_project.RECORDINGS)), place)
    return finished("train", config, place) if prepared else None


def finished(verb: str, config: "Config", place: Project) -> runs.Run | None:
    """Do a run and follow it; None when it was stopped or has failed, which was said."""
    print(f"\n{verb} …", flush=True)
    started = runs.start(verb, config, place)
    return None if follow(started) else started


def speak(place: Project, output: Path) -> "tuple[EvaluationReport, Path]":
    """Let the taught model and the one that it began as say the same in the voice of a clip."""
    from utils.evaluation.candidates import candidates
    from utils.evaluation.evaluate import evaluate
    from utils.evaluation.utterance import TestSentence

    clip = reference(place)
    said = [TestSentence(text, languages.AMHARIC.code, reference=str(clip)) for text in SENTENCES]
    models = candidates([str(place.ready), TINY], SpeechConfig(), output)
    return evaluate(models, said, place.root / FOLDER, SpeechConfig()), clip


def reference(place: Project) -> Path:
    """Choose a clip of the recording whose voice is asked for."""
    from utils.dataset.coqui_lists import FILES
    from utils.evaluation import sentences

    return Path(sentences.sentences_from_clips(place.dataset / FILES["train"], languages.AMHARIC.code)[0].reference)
