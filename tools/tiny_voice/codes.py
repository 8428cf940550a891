"""The codes stage: every clip encoded, and given another clip of its voice to be heard before it.

Training crops the reference of a clip out of the clip itself. Of a word that lasts a second this is all of it: a model
that is learning to speak would copy what it hears and never look at the text. So the feature store is filled here,
under the keys that training looks for, with the codes of each clip and the mel frames of others of the same voice.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tools.tiny_voice.stages import BuildContext
from utils.config import TrainConfig
from utils.core.paths import resolve_inside
from utils.dataset import metadata
from utils.dataset.clip import Clip
from utils.dataset.features import AUDIO, FOLDER, Array, Shards
from utils.media import audio
from utils.training.clips import HALF_SECOND_FRAMES
from utils.xtts.codec import AudioEncoder, EncodedClip

WINDOW = 256  # clips of one voice that are each other's references
BATCH = 16  # clips of similar length that are encoded together
LISTS = {
    "phrases": ("phrases_train.csv", "phrases_eval.csv"),
    "sentences": ("sentences_train.csv", "sentences_eval.csv"),
}

Mel = npt.NDArray[np.float16]


def encode_all(context: BuildContext) -> dict[str, Any]:
    """Encode the clips of all lists that have no features yet."""
    dataset, progress = context.folder("audio"), context.progress("codes")
    encoder = AudioEncoder.load(context.folder("dvae"), context.device)
    clips = list({clip.content: clip for name in LISTS for clip in read_clips(dataset, name).clips}.values())
    shards = Shards(dataset / FOLDER / f"audio-{encoder.fingerprint}", AUDIO, bulky=["mel"])
    for damage in shards.repair():
        progress.say(str(damage))
    windows = list(_windows([clip for clip in clips if clip.content not in shards]))
    for window in progress.over(windows, len(windows)):
        _append(shards, window, dataset, encoder, 2 * context.recipe.codes.reference_seconds * HALF_SECOND_FRAMES)
    return {"clips": len(clips), **_use(shards, clips)}


def read_clips(dataset: Path, name: str) -> metadata.ClipLists:
    """Read the lists of a lesson."""
    train, judged = (str(dataset / path) for path in LISTS[name])
    return metadata.read_clips(TrainConfig(train_csv=train, eval_csv=judged), dataset)


def store_key(context: BuildContext) -> str:
    """Return the fingerprint of the encoder, which names the table of its codes."""
    return AudioEncoder.load(context.folder("dvae")).fingerprint


def _windows(clips: Sequence[Clip]) -> Iterator[list[Clip]]:
    """Group clips by voice, in an order that mixes texts and lengths."""
    for speaker in sorted({clip.speaker for clip in clips}):
        own = sorted((clip for clip in clips if clip.speaker == speaker), key=lambda clip: clip.content)
        count = max(1, len(own) // WINDOW)
        yield from (own[place::count] for place in range(count))


def _append(shards: Shards, window: Sequence[Clip], dataset: Path, encoder: AudioEncoder, frames: int) -> None:
    """Encode the clips of a window and write one shard."""
    waves = {clip.content: audio.load(resolve_inside(dataset, clip.audio), encoder.rate) for clip in window}
    order = sorted(waves, key=lambda content: waves[content].size)
    made: dict[str, EncodedClip] = {}
    for start in range(0, len(order), BATCH):
        some = order[start : start + BATCH]
        made |= dict(zip(some, encoder.encode([waves[content] for content in some]), strict=True))
    names = [clip.content for clip in window]
    references = [_others([made[name].mel for name in names], place, frames) for place in range(len(names))]
    columns: dict[str, Array | list[Array]] = {
        "samples": np.array([waves[name].size for name in names], np.int32),
        "codes": [made[name].codes for name in names],
        "mel": [reference.ravel() for reference in references],
    }
    shards.append(names, columns)


def _others(mels: Sequence[Mel], place: int, frames: int) -> Mel:
    """Put the frames of the clips behind one another until they are enough, beginning with the next one."""
    found, total = [], 0
    for step in range(1, frames + 1):
        mel = mels[(place + step) % len(mels)]
        found.append(mel[: frames - total])
        total += len(found[-1])
        if total == frames:
            break
    return np.concatenate(found)


def _use(shards: Shards, clips: Sequence[Clip]) -> dict[str, Any]:
    """Count which codes the clips have."""
    codes = np.concatenate([shards.row(clip.content, "codes") for clip in clips])
    share = np.bincount(codes) / codes.size
    share = share[share > 0]
    return {
        "codes": int(codes.size),
        "codes_used": int(share.size),
        "perplexity": round(float(np.exp(-(share * np.log(share)).sum())), 1),
    }
