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
    _write_datasets(folder / "dataset")
    _write_subtitles(folder / "subtitles")
    _write_audio(folder / "sounds")
    _write_settings(folder / "settings")
    return folder


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


def _write_datasets(folder: Path) -> None:
    write_dataset(folder, seconds=0.01)
    editor.set_text(folder, "r-3", "ሰላም ነው።")
    editor.undo(folder)
    editor.exclude(folder, ["r-4"], REASON)
    write_lists(folder)
    old = folder.with_name("dataset_1_0")
    make_folder(old)
    (old / store.MANIFEST).write_text(MANIFEST_1_0, encoding="utf-8")
    (old / store.RECORDINGS).write_text(RECORDINGS_1_0, encoding="utf-8")


def _write_subtitles(folder: Path) -> None:
    make_folder(folder)
    cues = [Cue(Span(3.0 * n, 3.0 * n + 2.5), text) for n, text in enumerate(sample_project.sentences()[:12])]
    (folder / "a.srt").write_text(subtitles.srt(cues), encoding="utf-8")
    (folder / "a.vtt").write_text(subtitles.vtt(cues), encoding="utf-8")
    lines = (
        f"Dialogue: 0,0:00:{3 * n:02}.00,0:00:{3 * n + 2:02}.50,Default,,0,0,0,,{{\\i1}}{cue.text}\n"
        for n, cue in enumerate(cues)
    )
    (folder / "a.ass").write_text(ASS + "".join(lines), encoding="utf-8")


def _write_audio(folder: Path) -> None:
    make_folder(folder)
    sound = random_model.synthetic_speech(0.5, 3)
    audio.save(folder / "a.wav", sound, RATE)
    soundfile.write(folder / "float.wav", sound, RATE, subtype="FLOAT")
    audio.save(folder / "a.flac", sound, RATE)
    soundfile.write(folder / "a.ogg", np.stack([sound, sound], 1), RATE)
    soundfile.write(folder / "a.mp3", sound, RATE)


def _write_settings(folder: Path) -> None:
    make_folder(folder)
    (folder / "train.yaml").write_text(TrainConfig(language="am", num_epochs=3).to_yaml(), encoding="utf-8")
    (folder / "dataset.yaml").write_text(DatasetConfig().to_yaml(), encoding="utf-8")
    (folder / "preset.yaml").write_bytes(sorted(CONFIGS.glob("*.yaml"))[0].read_bytes())


def _write_run(folder: Path, base: Path, amharic: Tokenizer) -> None:
    make_folder(folder)
    run = Run(folder)
    run.config.write_text(TrainConfig(version=TINY_RANDOM).to_yaml(), encoding="utf-8")
    run.write_state(State("train", Status.STOPPED, 1.7e9, 4_194_000, "boot/1", "machine", 1.7e9, "It was stopped."))
    with EventLog(run.events) as events:
        events.emit("started", pid=1)
        events.emit("what_is_on", message="sdpa: on", parts={"sdpa": "on"})
        for step in range(1, 8):
            events.emit("train", step=step, epoch=step / 4, loss=1 / step, grad_norm=float("nan"), clips_per_second=3.5)
            events.emit("progress", step=step, total=7, seconds_left=7.0 - step)
        events.emit("evaluation", step=7, loss=0.5, loss_text=0.1, loss_audio=0.4)
        events.emit("ended", status="stopped", message="Stopped and saved.")
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
