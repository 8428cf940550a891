"""The formats of files: intact specimens, written by the product, and the function by which the product reads each."""

import contextlib
import hashlib
import logging
import shutil
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import soundfile
import torch

from testing import random_model
from tests.dataset.recordings import sample_texts
from utils.config import DatasetConfig, TrainConfig
from utils.core import storage
from utils.core.errors import AmharicTtsError
from utils.core.events import EventLog, last_number
from utils.core.storage import make_folder
from utils.dataset import editor, metadata, text_files
from utils.dataset.clip import Clip, Source
from utils.dataset.store import Store
from utils.dataset.subtitles import fit_cues, read_cues
from utils.media import audio
from utils.media.rates import RATE
from utils.recognition.facts import BandLimited
from utils.recognition.levels import ClipScores
from utils.recognition.spans import Cue, Span
from utils.speech import subtitles
from utils.studio.models import model_source
from utils.studio.paths import CONFIGS
from utils.studio.run_state import State
from utils.studio.runs import Run
from utils.training import preparation, resume_state
from utils.training.resume_state import Snapshot
from utils.xtts import checkpoints, model
from utils.xtts.checkpoints import CheckpointInfo
from utils.xtts.files import CONFIG_FILE, MODEL_FILE, SETTINGS_FILE, TINY, VOCABULARY_FILE
from utils.xtts.tensors import read_tensors, write_tensors
from utils.xtts.tokenizer import Tokenizer, prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

RUN, DATASET, MODEL, STEP = "runs/1-train", "dataset", "model", 3
RESUME, CHECKPOINT = f"{RUN}/{checkpoints.RESUME_FOLDER}", f"{RUN}/{checkpoints.FOLDER}/step_{STEP}"
CLIPS, FIRST_EVAL = 12, 9  # number of clips, and the first one for evaluation
APPROVED_CLIPS = ["r-1", "r-2"]
REASON = "noisy to my ear"  # why clips are excluded
TEXT = "ሰላም፣ 3 ልጆች ናቸው።"
ASS = """[Script Info]
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize
Style: Default,Arial,20

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
"""


class Outcome(NamedTuple):
    """What reading a file led to."""

    kind: Literal["read", "refused", "failed", "unmarked"]
    reason: str = ""
    has_hint: bool = True


@dataclass(frozen=True)
class Format:
    """A kind of file, and the function by which the product reads it."""

    name: str
    file: str  # path of an intact one below the specimens
    read: Callable[[Path], object]
    is_hashed: bool = False  # what is read must be what was written; ``read`` returns it as text

    def outcome(self, specimens: Path, content: bytes, copy: Path) -> Outcome:
        """Read a file with this content, in a copy of the specimens around it."""
        if copy.exists():  # moved away first: lists are written a second after an edit, also while a folder is deleted
            shutil.rmtree(copy.rename(f"{copy}-{time.time_ns()}"), ignore_errors=True)
        folder = self.file.partition("/")[0]
        shutil.copytree(specimens / folder, copy / folder)
        (copy / self.file).write_bytes(content)
        try:
            with warnings_logged() as warnings:
                value = self.read(copy / self.file)
        except AmharicTtsError as error:
            return Outcome("refused", type(error).__name__, bool(error.hint))
        except Exception as error:  # noqa: BLE001  # any other error is what these tests look for
            return Outcome("failed", "".join(traceback.format_exception(error)[-4:]))
        if warnings and self.is_hashed:
            return Outcome("refused", warnings[0])
        return Outcome("read", str(value) if self.is_hashed else "")


@contextlib.contextmanager
def warnings_logged() -> Iterator[list[str]]:
    """Collect the warnings that are logged."""
    found: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    yield found
    logging.getLogger().removeHandler(handler)


def read_lists(path: Path) -> None:
    text_files.read_listing(path)
    metadata.read_clips(TrainConfig(), path.parent)


def read_sound(path: Path) -> None:
    audio.probe(path)
    audio.load(path, 16_000)
    audio.load(path, 24_000, 0.1, 0.2)


def read_vocabulary(path: Path) -> None:
    prepare_tokenizer(Vocabulary.load(path), "am", texts=[TEXT]).tokenize(TEXT, "am")


def read_checkpoints(path: Path) -> str:
    """List the checkpoints of a run, open the newest, and find the best."""
    run = path.parents[2] if path.parent.name.startswith(checkpoints.PREFIX) else path.parents[1]
    for checkpoint in checkpoints.list_checkpoints(run):
        checkpoint.require_info()
    newest = checkpoints.find(run, "newest")
    checkpoints.find(run, "best")
    return describe([newest.info, checkpoints.read_state(newest.folder)])


def read_resume_state(path: Path) -> str:
    resume_state.can_resume(path.parent)
    return describe(vars(resume_state.load(path.parent)))


def describe(value: object) -> str:
    """Hash a nested value, with the content of its tensors."""
    with np.printoptions(threshold=10**9), torch_printing():
        return hashlib.sha256(repr(value).encode()).hexdigest()


@contextlib.contextmanager
def torch_printing() -> Iterator[None]:
    torch.set_printoptions(threshold=10**9, precision=17)  # type: ignore[no-untyped-call]
    yield
    torch.set_printoptions(profile="default")  # type: ignore[no-untyped-call]


def read_text_settings(path: Path) -> None:
    Tokenizer.load(path.parent).tokenize(TEXT, "am")


def read_base(path: Path) -> str:
    return str(preparation.find_base(TrainConfig(version=TINY), path.parent, model_source()))


def read_subtitles(path: Path) -> None:
    fit_cues(read_cues(path)[0], 40.0, path.name)


FORMATS = (
    Format("list of clips", f"{DATASET}/{metadata.FILES['train']}", read_lists),
    Format("settings YAML", "settings/train.yaml", TrainConfig.load),
    Format("dataset YAML", "settings/dataset.yaml", DatasetConfig.load),
    Format("preset YAML", "settings/preset.yaml", TrainConfig.load),
    *(Format(kind.upper(), f"subtitles/a.{kind}", read_subtitles) for kind in ("srt", "vtt", "ass")),
    Format("wav of floats", "sounds/float.wav", read_sound),
    *(Format(kind, f"sounds/a.{kind}", read_sound) for kind in ("wav", "flac", "ogg", "mp3")),
    Format("vocab.json", f"{MODEL}/{VOCABULARY_FILE}", read_vocabulary),
    Format("text.json", f"{CHECKPOINT}/{SETTINGS_FILE}", read_text_settings),
    Format("config.json", f"{MODEL}/{CONFIG_FILE}", lambda path: model.read_config(path.parent)),
    Format("model.pth", f"{MODEL}/{MODEL_FILE}", model.read_state_dict),
    Format("safetensors", f"{RUN}/loose.safetensors", read_tensors),
    Format("base.json", f"{RUN}/{preparation.BASE_FILE}", read_base, is_hashed=True),
    Format("checkpoint.json", f"{CHECKPOINT}/{checkpoints.MANIFEST}", read_checkpoints, is_hashed=True),
    Format("checkpoint weights", f"{CHECKPOINT}/{checkpoints.MODEL}", read_checkpoints, is_hashed=True),
    Format("resume state", f"{RESUME}/{checkpoints.RESUME_STATE}", read_resume_state, is_hashed=True),
    Format("resume optimizer", f"{RESUME}/{resume_state.OPTIMIZER_TREE}", read_resume_state, is_hashed=True),
    Format("resume weights", f"{RESUME}/{resume_state.WEIGHTS}", read_resume_state, is_hashed=True),
)


def write_specimens(folder: Path) -> None:
    """Write an intact file of every format; the folder looks like a project."""
    write_without_model(folder)
    base = random_model.build(folder / MODEL)
    texts = sample_texts()
    write_run(folder / RUN, base, prepare_tokenizer(Vocabulary.load(base / VOCABULARY_FILE), "am", texts=texts))


def write_without_model(folder: Path) -> None:
    for name in ("subtitles", "sounds", "settings"):
        make_folder(folder / name)
    write_dataset(folder / DATASET, seconds=0.01)
    editor.set_text(folder / DATASET, "r-3", "ሰላም ነው።")
    editor.undo(folder / DATASET)
    editor.exclude(folder / DATASET, ["r-4"], REASON)
    metadata.write_lists(folder / DATASET)
    sound = random_model.synthetic_speech(0.5, 3)
    for kind in ("wav", "flac"):
        audio.save(folder / "sounds" / f"a.{kind}", sound, RATE)
    soundfile.write(folder / "sounds" / "float.wav", sound, RATE, subtype="FLOAT")
    soundfile.write(folder / "sounds" / "a.ogg", np.stack([sound, sound], 1), RATE)
    soundfile.write(folder / "sounds" / "a.mp3", sound, RATE)
    cues = [Cue(Span(3.0 * n, 3.0 * n + 2.5), text) for n, text in enumerate(sample_texts()[:12])]
    dialogue = "Dialogue: 0,0:00:{0.span.start:05.2f},0:00:{0.span.end:05.2f},Default,,0,0,0,,{{\\i1}}{0.text}\n"
    texts = {
        "subtitles/a.srt": subtitles.srt(cues),
        "subtitles/a.vtt": subtitles.vtt(cues),
        "subtitles/a.ass": ASS + "".join(map(dialogue.format, cues)),
        "settings/train.yaml": TrainConfig(language="am", num_epochs=3).to_yaml(),
        "settings/dataset.yaml": DatasetConfig().to_yaml(),
        "settings/preset.yaml": sorted(CONFIGS.glob("*.yaml"))[0].read_text(encoding="utf-8"),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def write_dataset(folder: Path, seconds: float = 1.5) -> None:
    """Write a small dataset of generated audio, with two approved clips."""
    make_folder(folder / metadata.WAVS)
    clips = []
    for number, text in enumerate(sample_texts()[:CLIPS]):
        start = number * (seconds + 1)
        clip = Clip(
            f"r-{number}",
            "r",
            "in.wav",
            Span(start, start + seconds),
            "speaker",
            text,
            audio=f"{metadata.WAVS}/r-{number}.wav",
            content=f"{number:016x}",
            scores=ClipScores(0.9, 30.0, 0.0, -20.0, 12.5, 0.9),
            split="eval" if number >= FIRST_EVAL else "train",
        )
        audio.save(folder / clip.audio, random_model.synthetic_speech(seconds, number), RATE)
        clips.append(clip)
    length = len(clips) * (seconds + 1)
    Store(folder).add(
        Source("r", "in.wav", 1000, 1_700_000_000_000_000_000, length, warnings=(BandLimited(4000.0),)),
        clips,
    )
    metadata.write_lists(folder, "am")
    editor.approve(folder, APPROVED_CLIPS)


def write_run(folder: Path, base: Path, amharic: Tokenizer) -> None:
    make_folder(folder)
    run = Run(folder)
    run.config.write_text(TrainConfig(version=TINY).to_yaml(), encoding="utf-8")
    write_events(run.events)
    state = State("train", "stopped", 1.7e9, 4_194_000, "boot/1", "machine", 1.7e9, "It was stopped.")
    run.write_state(replace(state, lines=last_number(run.events.read_bytes())))
    note = {"folder": str(base), "fingerprint": model.fingerprint(base)}
    storage.write_document(folder / preparation.BASE_FILE, note)
    weights = {f"gpt.{name}": torch.full((8, 4), 0.5) for name in "abc"}
    about = CheckpointInfo(STEP, 0.75, 2.5, 2.0, 1.0, 3.0, 1.7e9, str(base), vocabulary_hash="v")
    checkpoints.write(folder, weights, replace(about, settings={"version": TINY}), fill=amharic.save)
    checkpoints.mark_best(folder, STEP)
    optimizer = {"state": {0: {"step": torch.tensor(3.0), "exp_avg": torch.ones(8, 4)}}, "param_groups": [{"lr": 1e-3}]}
    random, extra = resume_state.capture_rng(), {"update": STEP, "samples": 12}
    snapshot = Snapshot(STEP, weights, optimizer, random=random, extra=extra)
    resume_state.save(folder / checkpoints.RESUME_FOLDER, snapshot)
    write_tensors(folder / "loose.safetensors", weights | {"turned": torch.ones(3, 5).t(), "same": weights["gpt.a"]})


def write_events(path: Path) -> None:
    """Write one event of each kind that the page shows, and several updates."""
    with EventLog(path) as events:
        events.emit("started", pid=1)
        events.emit("clips", split="train", used=3, aside=0)
        events.emit("optimization", name="enable_sdpa", changed=2, detail="fast")
        events.emit("what_is_on", message="sdpa: on", parts={"sdpa": "on"})
        events.emit("memory_plan", fits=True, message="1 GiB", parts={"weights": 1.0})
        for step in range(1, 8):
            rates = {"grad_norm": float("nan"), "learning_rate": 1e-3, "clips_per_second": 3.5}
            events.emit("train", step=step, epoch=step / 4, loss=1 / step, **rates)
            events.emit("progress", step=step, total=7, seconds_left=7.0 - step)
        events.emit("evaluation", step=7, epoch=1.75, loss=0.5, loss_text=0.1, loss_audio=0.4)
        events.emit("sample", step=7, text="a", file="samples/step_7/1.wav")
        events.emit("resumed", step=4, epoch=0.9)
        events.emit("ended", status="stopped", message="Stopped and saved.")
