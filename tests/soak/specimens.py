"""Intact files of every format, written by the product itself, for the mutations to damage."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import soundfile
import torch

from tests.dataset.test_store import MANIFEST_1_0, RECORDINGS_1_0
from utils.config import DatasetConfig, TrainConfig
from utils.core.events import EventLog
from utils.core.paths import CONFIGS
from utils.core.storage import make_folder
from utils.dataset import editor, store
from utils.dataset.clip import Clip, Cue, Scores, Source, Span
from utils.dataset.metadata import WAVS, write_lists
from utils.dataset.store import Store
from utils.media import audio
from utils.media.rates import RATE
from utils.runs import Run, State, Status
from utils.speech import subtitles
from utils.training import resume_state
from utils.training.preparation import BASE_FILE
from utils.training.resume_state import Snapshot
from utils.workspace import sample_project
from utils.xtts import checkpoints, model, random_model, tokenizer
from utils.xtts.checkpoints import CheckpointInfo
from utils.xtts.files import TINY_RANDOM, VOCABULARY_FILE
from utils.xtts.tensors import write_tensors
from utils.xtts.tokenizer import Tokenizer
from utils.xtts.vocabulary import Vocabulary

CLIPS, FIRST_EVAL = 12, 9  # number of clips, and the first one for evaluation
APPROVED_CLIPS = ["r-1", "r-2"]
REASON = "noisy to my ear"  # why clips are excluded
STEP = 3
ASS = """[Script Info]
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize
Style: Default,Arial,20

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
"""


def write_all(folder: Path) -> Path:
    """Write all of them; return the folder, which looks like a project."""
    write_without_model(folder)
    base = random_model.build(folder / "model")
    texts = sample_project.sentences()
    amharic = tokenizer.prepare_tokenizer(Vocabulary.load(base / VOCABULARY_FILE), "am", texts=texts)
    _write_run(folder / "runs" / "1-train", base, amharic)
    return folder


def write_without_model(folder: Path) -> Path:
    """Write those that need no model; return the folder."""
    for name in ("dataset_1_0", "subtitles", "sounds", "settings"):
        make_folder(folder / name)
    write_dataset(folder / "dataset", seconds=0.01)
    editor.set_text(folder / "dataset", "r-3", "ሰላም ነው።")
    editor.undo(folder / "dataset")
    editor.exclude(folder / "dataset", ["r-4"], REASON)
    write_lists(folder / "dataset")
    sound = random_model.synthetic_speech(0.5, 3)
    audio.save(folder / "sounds" / "a.wav", sound, RATE)
    audio.save(folder / "sounds" / "a.flac", sound, RATE)
    soundfile.write(folder / "sounds" / "float.wav", sound, RATE, subtype="FLOAT")
    soundfile.write(folder / "sounds" / "a.ogg", np.stack([sound, sound], 1), RATE)
    soundfile.write(folder / "sounds" / "a.mp3", sound, RATE)
    cues = [Cue(Span(3.0 * n, 3.0 * n + 2.5), text) for n, text in enumerate(sample_project.sentences()[:12])]
    texts = {
        f"dataset_1_0/{store.MANIFEST}": MANIFEST_1_0,
        f"dataset_1_0/{store.RECORDINGS}": RECORDINGS_1_0,
        "subtitles/a.srt": subtitles.srt(cues),
        "subtitles/a.vtt": subtitles.vtt(cues),
        "subtitles/a.ass": ASS + "".join(map(_dialogue, cues)),
        "settings/train.yaml": TrainConfig(language="am", num_epochs=3).to_yaml(),
        "settings/dataset.yaml": DatasetConfig().to_yaml(),
        "settings/preset.yaml": sorted(CONFIGS.glob("*.yaml"))[0].read_text(encoding="utf-8"),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _dialogue(cue: Cue) -> str:
    start, end = (f"0:00:{seconds:05.2f}" for seconds in (cue.span.start, cue.span.end))
    return f"Dialogue: 0,{start},{end},Default,,0,0,0,,{{\\i1}}{cue.text}\n"


def write_dataset(folder: Path, seconds: float = 1.5) -> None:
    """Write a small dataset of generated audio, with two approved clips."""
    make_folder(folder / WAVS)
    clips = []
    for number, text in enumerate(sample_project.sentences()[:CLIPS]):
        start = number * (seconds + 1)
        clip = Clip(
            *(f"r-{number}", "r", "in.wav", Span(start, start + seconds), "speaker", text),
            audio=f"{WAVS}/r-{number}.wav",
            content=f"{number:016x}",
            scores=Scores(0.9, 30.0, 0.0, -20.0, 12.5, 0.9),
            split="eval" if number >= FIRST_EVAL else "train",
        )
        audio.save(folder / clip.audio, random_model.synthetic_speech(seconds, number), RATE)
        clips.append(clip)
    length = len(clips) * (seconds + 1)
    Store(folder).add(Source("r", "in.wav", 1000, 1_700_000_000_000_000_000, length, warnings=("a", "b")), clips)
    write_lists(folder, "am")
    editor.approve(folder, APPROVED_CLIPS)


def _write_run(folder: Path, base: Path, amharic: Tokenizer) -> None:
    make_folder(folder)
    run = Run(folder)
    run.config.write_text(TrainConfig(version=TINY_RANDOM).to_yaml(), encoding="utf-8")
    run.write_state(State("train", Status.STOPPED, 1.7e9, 4_194_000, "boot/1", "machine", 1.7e9, "It was stopped."))
    write_events(run.events)
    note = {"folder": str(base), "fingerprint": model.fingerprint(base)}
    (folder / BASE_FILE).write_text(json.dumps(note), encoding="utf-8")
    weights = {f"gpt.{name}": torch.full((8, 4), 0.5) for name in "abc"}
    about = CheckpointInfo(STEP, 0.75, 2.5, 2.0, 1.0, 3.0, 1.7e9, str(base), config_hash="c", vocabulary_hash="v")
    checkpoints.write(folder, weights, dataclasses.replace(about, settings={"version": TINY_RANDOM}), fill=amharic.save)
    checkpoints.mark_best(folder, STEP, 2.0)
    optimizer = {"state": {0: {"step": torch.tensor(3.0), "exp_avg": torch.ones(8, 4)}}, "param_groups": [{"lr": 1e-3}]}
    extra = {"update": STEP, "samples": 12}
    resume_state.save(
        folder / checkpoints.RESUME_FOLDER,
        Snapshot(STEP, weights, optimizer, random=resume_state.capture_rng(), extra=extra),
    )
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
