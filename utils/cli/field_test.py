"""Test everything with the real XTTS v2 on this computer and write a short report to send back.

It checks the weights against what the code expects, speaks in two languages, trains 200 updates on the clips of a
project or on the sample, exports the voice, and loads the export in plain coqui-tts. What fails is noted, and the rest
goes on. The report contains no sound, text or path of yours.
"""

import argparse
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from utils.cli.runs import add_output, follow
from utils.config import DatasetConfig, SpeechConfig, TrainConfig
from utils.core import monitor
from utils.core.errors import ChildError
from utils.core.events import iter_events
from utils.core.facts import from_json
from utils.core.paths import expand_home
from utils.core.processes import query
from utils.core.storage import make_folder, write_atomically
from utils.media import audio
from utils.media.audio import faded
from utils.media.rates import RATE
from utils.studio import runs, sample_project
from utils.studio.paths import FIELD_TEST, OUTPUT, Project, project
from utils.system.doctor import examine
from utils.training.advice import advise, training_data
from utils.training.facts import Evaluation, Train
from utils.xtts.files import HUB_FILES, SPEAKERS_FILE

if TYPE_CHECKING:
    from torch import Tensor

REPORT = "report.md"
PUBLISHED = {  # sizes of XTTS v2 that the code, the plans and the tests rely on
    "gpt_layers": 30, "gpt_n_model_channels": 1024, "gpt_n_heads": 16, "gpt_max_audio_tokens": 605,
    "gpt_max_text_tokens": 402, "gpt_max_prompt_tokens": 70, "gpt_num_audio_tokens": 1026,
    "gpt_start_audio_token": 1024, "gpt_stop_audio_token": 1025, "gpt_code_stride_len": 1024,
    "decoder_input_dim": 1024, "d_vector_dim": 512, "input_sample_rate": 22050, "output_sample_rate": 24000,
}  # fmt: skip
LANGUAGES = 17
TEXTS = {"en": "This is a short test.", "it": "Questa è una breve prova."}
AMHARIC_TEXT = "ሰላም ለዓለም።"
MAX_ERROR = 15.0  # dB between the spectrum of speech and of its codes; codes of random weights are far above
FEW_CODES = 20  # different ones in the sample; fewer mean that the codec does not tell sounds apart
SECONDS = 6
PLAIN = """
import sys, soundfile, torch
from pathlib import Path
from TTS.tts.configs.xtts_config import XttsConfig
from TTS.tts.models.xtts import Xtts
folder, language, text = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
config = XttsConfig()
config.load_json(folder / "config.json")
model = Xtts(config)
model.load_checkpoint(config, checkpoint_dir=folder)
samples, rate = soundfile.read(folder / "reference.wav", dtype="float32", always_2d=True)
reference = torch.from_numpy(samples.mean(axis=1)).unsqueeze(0)
latents, voice = model.get_gpt_cond_latents(reference, rate), model.get_speaker_embedding(reference, rate)
print(len(model.inference(text, language, latents, voice, max_new_tokens=100)["wav"]) / 24000)
"""
Findings = Iterator[str]  # a line each; what begins with ! is a problem


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="", metavar="FOLDER", help="default: the downloaded XTTS v2")
    parser.add_argument("--project", default="", help="project with your clips (default: the sample recording)")
    parser.add_argument("--updates", type=int, default=200, help="of the training (default: 200)")
    parser.add_argument("--only-weights", action="store_true", help="check the weights and nothing else")
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print and write the report; the exit code is 1 if there is a problem."""
    from utils.studio.models import model_source
    from utils.xtts.base_models import base_folder

    folder = arguments.output / FIELD_TEST
    make_folder(folder)
    model = Path(arguments.model) if arguments.model else base_folder(TrainConfig().version, model_source())
    test = FieldTest(folder, model, arguments.project, arguments.updates)
    lines = ["# Field test", "", *(f"- {each.name}: {each.detail}" for each in examine(arguments.output))]
    for title, step in list(STEPS.items())[: 1 if arguments.only_weights else None]:
        lines += section(title, partial(step, test))
        written = "\n".join([*lines, ""])
        for path in (arguments.output, expand_home("~")):
            written = written.replace(str(path.resolve()), "…")
        write_atomically(folder / REPORT, written)
    print("\n".join(lines), f"\nPlease send back: {folder / REPORT}", sep="\n")
    return int(any(line.startswith("- !") for line in lines))


def section(title: str, step: Callable[[], Findings]) -> list[str]:
    """Run a step and return its section of the report."""
    print(f"{title} …", flush=True)
    began = time.monotonic()
    found = list(survive(step))
    problems = sum(line.startswith("!") for line in found)
    verdict = f"{problems} problems" if problems else "good"
    head = f"## {title}: {verdict} ({time.monotonic() - began:.0f} s)"
    return ["", head, "", *(f"- {line}" for line in found)]


def survive(step: Callable[[], Findings]) -> Findings:
    """Yield what a step finds; an error is a finding too, with the place in our code where it was raised."""
    try:
        yield from step()
    except Exception as error:  # noqa: BLE001  # whatever it is, the developers need it
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/utils/" in frame.filename]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
        yield f"! {type(error).__name__}: {error} ({place})"


class FieldTest:
    """One test of a model on this computer."""

    def __init__(self, folder: Path, model: Path, name: str, updates: int) -> None:
        self.folder = folder
        self.model = model
        self.updates = updates
        self.name = name
        self.exported = folder / "voice"

    def weights(self) -> Findings:
        for check in CHECKS:
            yield from survive(partial(check, self.model))

    def speech(self) -> Findings:
        from utils.studio.loading import chosen_voice

        began = time.monotonic()
        voice = chosen_voice(SpeechConfig(model=str(self.model)))
        precision = voice.precision
        yield f"loaded in {time.monotonic() - began:.0f} s, {precision.gpt} on {precision.device}"
        for language, text in TEXTS.items():
            spoken = voice.speak(text, SpeechConfig(language=language, tries=1))
            spoken.save(self.folder / f"{language}.wav")
            flags = ", ".join(flag.kind for flag in spoken.flags)
            mark = "! " if spoken.flags else ""
            yield f"{mark}{language}: {spoken.seconds:.1f} s, real-time factor {spoken.real_time_factor:.2f} {flags}"

    def training(self) -> Findings:
        opened = project(self.name, OUTPUT) if self.name else prepared_sample(self.folder)
        gib = monitor.read_once(self.folder).gpu_memory_total_gib
        data = training_data(opened.dataset, gib or None, TrainConfig().version)
        yield f"{data.clips} clips, {data.minutes:.1f} minutes"
        changes = {
            "custom_model": str(self.model),
            "output_path": str(opened.root.resolve()),
            "score_sentences": 0,
            "num_epochs": 1000,
            **dict.fromkeys(("max_steps", "eval_step", "save_step"), self.updates),
        }
        run = runs.start("train", advise(data).config.model_copy(update=changes), opened).run
        _finish(run)
        yield from training_results(run)
        self.ready = opened.ready

    def export(self) -> Findings:
        from utils.studio.loading import chosen_model
        from utils.studio.publishing import PublishOptions, publish

        published = publish(chosen_model(self.ready), self.exported, PublishOptions(), "# Field test\n")
        yield f"{published.after / 1e6:.0f} MB in {len(list(published.folder.iterdir()))} files"

    def plain(self) -> Findings:
        from utils.xtts.files import read_about

        alias = str(read_about(self.exported).get("alias") or "en")
        words = ["-c", PLAIN, str(self.exported), alias, AMHARIC_TEXT]
        seconds = query(words, lambda output: float(output.split()[-1]), timeout=3600)
        yield f"{seconds:.1f} s of Amharic under {alias}"


def prepared_sample(folder: Path) -> Project:
    """Make a project with the clips of the sample recording."""
    made = sample_project.create(folder, "sample")
    recordings = DatasetConfig(inputs=str(made.dataset / sample_project.UPLOADS))
    _finish(runs.start("prepare", recordings, made).run)
    return made


def training_results(run: runs.Run) -> Findings:
    facts = [from_json(event) for event in iter_events(run.events)]
    last = [fact for fact in facts if isinstance(fact, Train)][-1]
    losses = [fact.loss for fact in facts if isinstance(fact, Evaluation) and fact.loss is not None]
    yield f"{last.step} updates, {last.samples_per_second} clips/s, {last.memory_gb} GB"
    mark = "! " if losses[-1] > losses[0] else ""
    yield f"{mark}held-out loss {losses[0]:.4f} before, {losses[-1]:.4f} after"


def _finish(run: runs.Run) -> None:
    if follow(run):
        raise ChildError(run.current_state().reason())


def files(folder: Path) -> Findings:
    for name in HUB_FILES:
        path = folder / name
        yield f"{name}: {path.stat().st_size:,} bytes" if path.is_file() else f"! {name} is missing"


def sizes(folder: Path) -> Findings:
    from utils.xtts.model import read_config

    config = read_config(folder)
    found = {name: getattr(config.model_args, name) for name in PUBLISHED}
    wrong = [f"{name} is {found[name]}, not {size}" for name, size in PUBLISHED.items() if found[name] != size]
    yield f"! config: {'; '.join(wrong)}" if wrong else f"config: {len(PUBLISHED)} sizes as published"


def vocabulary(folder: Path) -> Findings:
    from utils.core.languages import known_languages
    from utils.xtts.model import read_config
    from utils.xtts.vocabulary import Vocabulary

    words = Vocabulary.load(folder / "vocab.json")
    rows = read_config(folder).model_args.gpt_number_text_tokens
    absent = [each.token for each in known_languages() if each.in_xtts and each.token not in words.special]
    mark = "! " if absent or words.size != rows else ""
    yield f"{mark}vocabulary: {words.size} tokens for {rows} rows, {LANGUAGES - len(absent)} of {LANGUAGES} languages"


def gpt(folder: Path) -> Findings:
    from utils.xtts.model import match_gpt

    match = match_gpt(folder)
    yield f"{'' if match.complete else '! '}GPT: {match}"


def vocoder(folder: Path) -> Findings:
    from utils.xtts.model import load_vocoder

    module, stats = load_vocoder(folder)
    yield f"vocoder: {sum(weight.numel() for weight in module.parameters()):,} parameters, {stats.numel()} mel bands"


def values(folder: Path) -> Findings:
    from utils.xtts.files import MODEL_FILE
    from utils.xtts.model import read_state_dict

    weights = read_state_dict(folder / MODEL_FILE)
    wrong = {"not finite": [name for name, weight in weights.items() if not weight.isfinite().all()]}
    wrong["all alike"] = [name for name, each in weights.items() if each.ndim > 1 and each.min() == each.max()]
    for problem, names in wrong.items():
        yield f"{'! ' if names else ''}{len(names)} weights are {problem} {', '.join(names[:3])}"


def codec(folder: Path) -> Findings:
    from utils.xtts.codec import AudioEncoder

    encoder = AudioEncoder.load(folder)
    speech = faded(audio.load(sample_project.DATA / sample_project.AUDIO_FILE, RATE)[: SECONDS * RATE], RATE)
    codes = len(set(encoder.encode([speech])[0].codes.tolist()))
    error = encoder.error_db(speech)
    mark = "! " if codes < FEW_CODES or error > MAX_ERROR else ""
    yield f"{mark}codec: {codes} different codes in {SECONDS} s, {error:.1f} dB from the original"


def speakers(folder: Path) -> Findings:
    from utils.xtts.codec import read_tensors_only
    from utils.xtts.model import read_config

    voices = cast("dict[str, dict[str, Tensor]]", read_tensors_only(folder / SPEAKERS_FILE))
    wanted: Any = {"gpt_cond_latent": (1, 32, read_config(folder).model_args.gpt_n_model_channels)}
    wanted["speaker_embedding"] = (1, PUBLISHED["d_vector_dim"], 1)
    wrong = [
        name for name, voice in voices.items() if {key: tuple(part.shape) for key, part in voice.items()} != wanted
    ]
    yield f"{'! ' if wrong else ''}speakers: {len(voices)}, {len(wrong)} with another shape {', '.join(wrong[:3])}"


STEPS = {
    "Weights": FieldTest.weights,
    "Speech": FieldTest.speech,
    "Training": FieldTest.training,
    "Export": FieldTest.export,
    "Plain coqui-tts": FieldTest.plain,
}
CHECKS = (files, sizes, vocabulary, gpt, vocoder, values, codec, speakers)
