"""Run the whole workflow on a bundled recording: prepare, fine-tune the embedded voice, speak and compare.

It needs no internet and no GPU, and takes a few minutes. The embedded voice learns the speaker of the recording and
speaks three new sentences. Audio files and a page (demo.html) are written to the project "demo"; running the command
again starts over.
"""

import argparse
import base64
import io
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from utils.cli.runs import add_output, follow
from utils.config import DatasetConfig, SpeechConfig, TrainConfig
from utils.core.events import iter_events
from utils.core.facts import Fact, Optimization, from_json
from utils.core.languages import AMHARIC
from utils.core.paths import TINY_MODEL
from utils.core.storage import write_atomically
from utils.dataset.metadata import FILES
from utils.evaluation.report import EvaluationReport, summary
from utils.evaluation.results import METRICS, EvaluatedUtterance
from utils.media import audio
from utils.media.rates import OUTPUT_RATE
from utils.studio import projects, runs, sample_project
from utils.studio.facts import ProjectError
from utils.studio.loading import chosen_voice
from utils.studio.paths import CONFIGS, Project
from utils.studio.templates import render
from utils.training.facts import Evaluation, Train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "demo"
PAGE = "demo.html"
VERSIONS = 8  # of each sentence, of which the best is used: fewer phones are wrong (tools/tiny_voice/README.md)
DISCLAIMER = (
    "The recording was generated with espeak-ng. The model is the small embedded voice of this program, trained on "
    "other voices of espeak-ng; it is not XTTS v2. This page shows the workflow, not the quality of XTTS v2. "
    f"Each sentence is the best of {VERSIONS} versions."
)
PRESET = CONFIGS / "tiny_cpu.yaml"
SENTENCES = (  # none of them is in the recording
    "ሰላም፣ እኔ የአማርኛ ድምፅ ነኝ።",
    "ዛሬ አዲስ አበባ ውስጥ ዝናብ ጣለ።",
    "ቡና እንጠጣ ወይስ ሻይ?",
)
SHOWN = ("similarity", "duration_error")  # the metrics that need no recogniser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output(parser)
    parser.add_argument("--settings", type=Path, default=PRESET, help="training YAML (default: configs/tiny_cpu.yaml)")


def run(arguments: argparse.Namespace) -> int:
    """Run one step after the other, each as the page does it."""
    start = time.monotonic()
    project = new_project(arguments.output)
    training = prepare_and_train(project, settings(arguments.settings, project))
    report, reference = speak_both(project, arguments.output)
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
            raise ProjectError("own_project", str(earlier))
        projects.delete(projects.find(NAME, output), output)
    return sample_project.create(output, NAME)


def settings(file: Path, project: Project) -> TrainConfig:
    """Load training settings and enable three optimizations; each does what this computer supports."""
    switches = dict.fromkeys(("enable_grad_checkpoint", "enable_sdpa", "enable_mixed_precision"), True)
    return TrainConfig.load(file).model_copy(update={"output_path": str(project.root.resolve()), **switches})


def prepare_and_train(project: Project, config: TrainConfig) -> runs.Run:
    """Prepare the recording and train on it; a run that stops or fails ends the program."""
    recordings = DatasetConfig(inputs=str(project.dataset / sample_project.UPLOADS))
    for verb, step_config in (("prepare", recordings), ("train", config)):
        print(f"\n{verb} …", flush=True)
        run = runs.start(verb, step_config, project).run
        if code := follow(run):
            sys.exit(code)
    return run


def speak_both(project: Project, output: Path) -> tuple[EvaluationReport, Path]:
    """Let the fine-tuned model and its base speak the sentences in the voice of a clip."""
    from utils.evaluation.evaluate import candidates, evaluate
    from utils.evaluation.sentences import EvaluationSentence

    reference = reference_clip(project)
    sentences = [EvaluationSentence(text, AMHARIC.code, reference=str(reference)) for text in SENTENCES]
    config = SpeechConfig(candidates=VERSIONS)
    models = candidates([project.ready, TINY_MODEL], lambda model: chosen_voice(SpeechConfig(model=str(model)), output))
    return evaluate(models, sentences, project.evaluation, config), reference


def reference_clip(project: Project) -> Path:
    """Choose a clip of the recording as the reference."""
    from utils.evaluation.sentences import sentences_from_clips

    return Path(sentences_from_clips(project.dataset / FILES["train"], AMHARIC.code)[0].reference)


def write_page(
    project: Project, training: runs.Run, report: EvaluationReport, reference: Path, notes: Sequence[str]
) -> Path:
    """Write demo.html with all audio and images embedded; the report is of the new model, then of its base."""
    tuned, base = report.checkpoints
    before = {result.sentence: result for result in report.of(base)}
    sentences = [  # worst first, so the two models differ in their order
        (after.text, (("before", _recording(report, before[after.sentence])), ("after", _recording(report, after))))
        for after in report.of(tuned)
    ]
    facts = [*map(from_json, iter_events(training.events))]
    page = render(
        PAGE,
        notes=notes,
        reference=_audio(reference),
        sentences=sentences,
        metrics=[metric for metric in METRICS if metric.name in SHOWN],
        scores={"after": summary(report.of(tuned)), "before": summary(report.of(base))},
        loss=_image(_loss_curve(facts)),
        optimizations=[fact for fact in facts if isinstance(fact, Optimization)],
    )
    path = project.root / PAGE
    write_atomically(path, page)
    return path


def _recording(report: EvaluationReport, result: EvaluatedUtterance) -> dict[str, str]:
    if not result.wav:
        reason = result.error.message if result.error else "; ".join(map(str, result.flags))
        return {"problem": reason or "no audio"}
    path = report.folder / result.wav
    return {"audio": _audio(path), "spectrogram": _image(_spectrogram(path))}


def _loss_curve(facts: Sequence[Fact]) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel="step", ylabel="audio loss")
    for kind, label in ((Train, "training clips"), (Evaluation, "held-out clips")):
        points = [(fact.step, fact.loss) for fact in facts if isinstance(fact, kind) and fact.loss is not None]
        axes.plot(*zip(*points, strict=True), label=label, marker=".")
    axes.legend()
    return figure


def _spectrogram(path: Path) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 2), layout="constrained")
    axes = figure.subplots()
    axes.specgram(audio.load(path, OUTPUT_RATE) + 1e-6, NFFT=1024, noverlap=768, Fs=OUTPUT_RATE / 1000, vmin=-120)
    axes.set(xlabel="ms", ylabel="kHz")
    return figure


def _image(figure: "Figure") -> str:
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=100)
    return f"data:image/png;base64,{base64.b64encode(image.getvalue()).decode()}"


def _audio(path: Path) -> str:
    return f"data:audio/{path.suffix[1:]};base64,{base64.b64encode(path.read_bytes()).decode()}"
