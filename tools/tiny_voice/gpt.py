"""The GPT stage: two runs of this project's own training, short pieces first and then whole sentences."""

import contextlib
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from tools.random_model import small_vocabulary
from tools.tiny_voice.codes import LISTS, read_clips, store_key
from tools.tiny_voice.continuing import transfer_codes
from tools.tiny_voice.recipe import Gpt, GptTraining
from tools.tiny_voice.stages import BuildContext, Progress
from tools.tiny_voice.training_loop import CURVE
from tools.tiny_voice.widen import widen
from tools.untrained import GptSize, VocoderSize, new_config, new_vocoder, write_config, write_speakers, write_weights
from utils.config import TrainConfig
from utils.core.events import Event, EventLog, iter_events
from utils.core.folders import replace_folder
from utils.core.languages import AMHARIC
from utils.core.paths import resolve_inside
from utils.core.storage import link_or_copy, write_atomically
from utils.dataset.features import AUDIO, FOLDER, Shards
from utils.media import audio
from utils.media.rates import RATE
from utils.studio import runs
from utils.studio.job import Job
from utils.studio.paths import Project
from utils.studio.runs import Run, Status
from utils.training.checkpoint_samples import NO_SAMPLES
from utils.xtts.codec import AudioEncoder
from utils.xtts.files import DVAE_FILE, MEL_FILE, MODEL_FILE, VOCABULARY_FILE
from utils.xtts.model import VOCODER_PREFIX, gpt_state, new_gpt, read_config, read_state_dict, strip_prefix
from utils.xtts.tokenizer import prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

if TYPE_CHECKING:
    from TTS.tts.configs.xtts_config import XttsConfig

BLANK = "blank"  # folder of the untrained model
SCALE = 0.05  # deviation of token and position embeddings
POSITIONS = {"text": "text_pos_embedding.emb.weight", "audio": "mel_pos_embedding.emb.weight"}
TOKENS = ("text_embedding.weight", "mel_embedding.weight")
LONGEST_WAVE = 400.0  # positions, about the longest text
SAMPLED = 500  # clips that the pace of speech is measured on
SHOWN = 100  # points of the curve of a lesson


def train_gpt_stage(context: BuildContext) -> dict[str, Any]:
    """Give both lessons and return what came of them."""
    base = _untrained_model(context)
    found: dict[str, Any] = {}
    lessons = (("phrases", context.recipe.gpt.phrases), ("sentences", context.recipe.gpt.sentences))
    for name, lesson in ((name, lesson) for name, lesson in lessons if lesson.updates):
        project = Project(context.folder("gpt") / name)
        if not project.ready.is_dir():
            _learn(project, training_config(context, name, lesson, base), context.progress(f"gpt, {name}"))
        found[name] = _told(project)
        base = project.ready
    return found


def trained_gpt(context: BuildContext) -> Path:
    """Return the folder of the GPT after the last lesson."""
    return Project(context.folder("gpt") / "sentences").ready


def training_config(context: BuildContext, name: str, lesson: GptTraining, base: Path) -> TrainConfig:
    """Return the settings of a lesson."""
    settings: Gpt = context.recipe.gpt
    train, judged = (str(context.folder("audio") / path) for path in LISTS[name])
    return TrainConfig(
        custom_model=str(base),
        language=AMHARIC.code,
        train_csv=train,
        eval_csv=judged,
        output_path=str(context.folder("gpt") / name),
        num_epochs=1000,
        max_steps=lesson.updates,
        batch_size=lesson.batch,
        grad_acumm=max(1, lesson.clips // lesson.batch),
        learning_rate=lesson.rate,
        warmup_steps=lesson.warmup,
        dropout=settings.dropout,
        mask_reference=False,  # it is another clip
        eval_step=settings.evaluate,
        save_step=settings.save,
        sample_texts=NO_SAMPLES,
        seed=settings.seed,
    )


def _untrained_model(context: BuildContext) -> Path:
    """Write the model to begin with, unless it is there."""
    folder, dvae = context.folder("gpt") / BLANK, context.folder("dvae")
    if folder.is_dir():
        return folder
    if context.base:
        return _continued_model(context, context.base, folder)
    gpt, codes = context.recipe.gpt, context.recipe.dvae.codes
    torch.manual_seed(gpt.seed)
    vocabulary = small_vocabulary()
    config = new_config(
        GptSize(gpt.layers, gpt.dim, gpt.heads, codes, context.recipe.codes.reference_seconds), vocabulary
    )
    size = VocoderSize(gpt.dim, context.recipe.vocoder.channels, context.recipe.speaker_encoder.filters)
    vocoder = widen(new_vocoder(size), size)
    stats = torch.load(dvae / MEL_FILE, weights_only=True)
    with replace_folder(folder) as new:
        write_config(new, config, vocabulary)
        write_weights(new, initial_gpt(config, vocabulary, _pace(context)), vocoder, stats)
        write_speakers(new, {})
        link_or_copy(dvae / DVAE_FILE, new / DVAE_FILE)
    return folder


def _continued_model(context: BuildContext, base: Path, folder: Path) -> Path:
    """Write an earlier voice whose GPT uses the codes of this build."""
    dvae, config = context.folder("dvae"), read_config(base)
    clips = read_clips(context.folder("audio"), "sentences").train[:SAMPLED]
    old, own = AudioEncoder.load(base), AudioEncoder.load(dvae)
    sounds = [audio.load(resolve_inside(context.folder("audio"), clip.audio), RATE) for clip in clips]
    pairs = [(old.encode([sound])[0].codes, own.encode([sound])[0].codes) for sound in sounds]
    codes = context.recipe.dvae.codes
    gpt = gpt_state(base)
    if old.fingerprint != own.fingerprint:
        gpt = transfer_codes(gpt, pairs, codes)
    arguments = config.model_args
    arguments.gpt_num_audio_tokens, arguments.gpt_start_audio_token = codes + 2, codes
    arguments.gpt_stop_audio_token = codes + 1
    config.gpt_cond_chunk_len = context.recipe.codes.reference_seconds  # ``read_config`` leaves it out
    vocoder = strip_prefix(read_state_dict(base / MODEL_FILE), VOCODER_PREFIX)
    with replace_folder(folder) as new:
        write_config(new, config, Vocabulary.load(base / VOCABULARY_FILE))
        write_weights(new, gpt, vocoder, torch.load(dvae / MEL_FILE, weights_only=True))
        write_speakers(new, {})
        link_or_copy(dvae / DVAE_FILE, new / DVAE_FILE)
    return folder


def _pace(context: BuildContext) -> float:
    """Measure how many tokens of text go with each code."""
    dataset = context.folder("audio")
    clips = read_clips(dataset, "sentences").train[:SAMPLED]
    reading = prepare_tokenizer(small_vocabulary(), AMHARIC.code)
    shards = Shards(dataset / FOLDER / f"audio-{store_key(context)}", AUDIO, bulky=["mel"])
    shards.open()
    tokens = sum(len(reading.encode(clip.text, AMHARIC.code)) for clip in clips)
    codes = sum(shards.length(clip.content, "codes") for clip in clips)
    return tokens / codes


def _learn(project: Project, config: TrainConfig, progress: Progress) -> None:
    """Do a lesson in this process, or go on with it where it was saved."""
    from utils.gpt_train import train

    run = _interrupted(project) or runs.create("train", config, project)
    # on a CPU, the flash kernel is slow in the backward pass of short clips
    kernels = contextlib.nullcontext() if torch.cuda.is_available() else sdpa_kernel(SDPBackend.MATH)
    with Job(run) as job, kernels:
        job.events.close()
        job.events = _ReportingLog(run.events, progress)
        train(config, run, job.report, job.should_stop)
    if not project.ready.is_dir():
        raise SystemExit(f"{run.folder} ended without a best checkpoint. Delete this folder and begin again.")


def _interrupted(project: Project) -> Run | None:
    """Return the run that was begun and not finished."""
    run = next(iter(runs.list_runs(project)), None)
    if run is None or run.current_state().status is Status.FINISHED:
        return None
    run.stop_file.unlink(missing_ok=True)
    return run


class _ReportingLog(EventLog):
    """Writes events, and tells those that a person waits for."""

    def __init__(self, path: Path, progress: Progress) -> None:
        super().__init__(path)
        self.progress = progress
        self.loss = ""

    def emit(self, kind: str, **fields: object) -> None:
        """Append one event and tell of it."""
        super().emit(kind, **fields)
        if kind == "train":
            self.loss = f"loss {fields.get('loss_audio', '')}"
        elif kind == "progress" and "seconds_left" in fields and "part" not in fields:
            done, total, left = (int(float(str(fields[name] or 0))) for name in ("step", "total", "seconds_left"))
            self.progress.at(done, total, left, self.loss)
        elif kind in {"evaluation", "warning", "resumed"}:
            self.progress.say(f"{kind} {fields.get('message') or fields.get('step')} {fields.get('loss_audio', '')}")


def _told(project: Project) -> dict[str, Any]:
    """Return the figures of a finished lesson and write its curve beside it."""
    run = runs.list_runs(project)[0]
    events = list(iter_events(run.events))
    judged = [_point(event) for event in events if event["kind"] == "evaluation"]
    trained = [_point(event) for event in events if event["kind"] == "train"]
    kept = [trained[int(place)] for place in np.unique(np.linspace(0, len(trained) - 1, SHOWN).astype(int))]
    write_atomically(project.root / CURVE, json.dumps({"unheard": judged, "trained": kept}))
    rates = [float(str(event["samples_per_second"])) for event in events if event["kind"] == "train"]
    best = min(judged[1:] or judged, key=lambda point: point["loss_audio"])
    return {
        "best": best,
        "first": judged[0],
        "updates": len(trained),
        "clips_per_second": round(float(np.median(rates)), 2),
    }


def _point(event: Event) -> dict[str, float]:
    names = ("step", "loss_audio", "loss_text")
    return {name: round(float(str(event[name])), 4) for name in names if name in event}


def initial_gpt(config: "XttsConfig", vocabulary: Vocabulary, pace: float) -> dict[str, Tensor]:
    """Draw the initial weights of a GPT whose attention aligns text and audio from the start.

    coqui starts tokens with a deviation of 1 and positions with 0.02, so attention cannot see positions. Here both
    start with the same deviation, and the positions of text and audio as the same waves, stretched by the pace at which
    tokens become codes: positions that belong together look alike from the first step. All of it is trained further.

    Args:
        config: Sizes.
        vocabulary: Text tokens.
        pace: Text tokens per code.
    """
    weights = new_gpt(config.model_args, vocabulary).state_dict()
    for name in TOKENS:
        weights[name] = weights[name] * SCALE
    for kind, name in POSITIONS.items():
        positions, dim = weights[name].shape
        weights[name] = position_waves(positions, dim, 1.0 if kind == "text" else pace)
    return weights


def position_waves(positions: int, dim: int, pace: float) -> Tensor:
    """Return sines and cosines of position times pace, from short waves to long ones."""
    lengths = 2 * math.pi * torch.exp(torch.linspace(0, math.log(LONGEST_WAVE / (2 * math.pi)), dim // 2))
    angles = 2 * math.pi * pace * torch.arange(positions)[:, None] / lengths
    return SCALE * math.sqrt(2) * torch.cat([angles.sin(), angles.cos()], dim=1)
