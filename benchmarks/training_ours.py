"""Our training: features made once, then the parts that ``fit`` puts together, without its files and events."""

import argparse
import math
import shutil
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.training_material import DATASET, LANGUAGE, MODEL, Round
from utils.config import TrainConfig
from utils.core.facts import Fact, ignore
from utils.core.wording import describe
from utils.dataset import features
from utils.dataset.features import FeatureStore
from utils.dataset.store import load_dataset
from utils.media.rates import FRAME_SAMPLES, RATE
from utils.training.batches import BatchSpec, UpdatePlan
from utils.training.clips import ClipLimits, FeatureSource, select_clips
from utils.training.distribution import Ranks, make_accelerator
from utils.training.fit import make_loader, make_step
from utils.training.model_size import ModelSize
from utils.training.packing import Example, SpecialTokens
from utils.training.precision import choose_by_time
from utils.training.speedups.dropout import set_dropout
from utils.training_optimizations import TrainingOptimizer
from utils.xtts.adapters import merged_state
from utils.xtts.codec import AudioEncoder
from utils.xtts.files import MEL_FILE
from utils.xtts.model import load_gpt
from utils.xtts.tokenizer import Tokenizer

LAST = 10**6  # updates; the benchmark ends before
SILENT_POWER = 1e-5  # of a mel band, the lowest that coqui's spectrogram returns
REFERENCE_FRAMES = math.ceil(6 * RATE / FRAME_SAMPLES)  # coqui's longest reference, to which it pads all


class Features:
    """Makes the features of all clips; the loading of the DVAE counts."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.device, self.dataset, self.model = options.device, folder / DATASET, folder / MODEL
        self.notes: list[str] = []

    def make(self) -> float:
        """Make them anew and return the seconds."""
        shutil.rmtree(self.dataset / features.FOLDER, ignore_errors=True)
        began = time.perf_counter()
        encoder, tokenizer = AudioEncoder.load(self.model, self.device), Tokenizer.load(self.model)
        if problems := features.build(self.dataset, load_dataset(self.dataset).kept, encoder, tokenizer, LANGUAGE):
            raise RuntimeError(f"{problems} clips could not be encoded")
        return time.perf_counter() - began


class Ours:
    """Our loop over the clips, whose features are there already."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.folder, model = folder, folder / MODEL
        settings = {  # the batch and rate of coqui
            "custom_model": str(model),
            "language": LANGUAGE,
            "batch_size": options.batch,
            "grad_acumm": 1,
            "learning_rate": 1e-4,
            "lr_scheduler": "constant",
            "warmup_steps": 0,
            "enable_grad_checkpoint": options.device == "cuda",
        }
        config = TrainConfig.parse(settings, source="the benchmark")
        optimizations = TrainingOptimizer(config)
        size = ModelSize.from_folder(model)
        optimizations.precision = choose_by_time(optimizations.precision, size, folder / "precisions.json")
        ranks = Ranks(make_accelerator(config, optimizations.precision.dtype, folder))
        torch.manual_seed(0)
        self.gpt = load_gpt(model)
        changes: list[Fact] = [set_dropout(self.gpt, config.dropout), *optimizations.apply(self.gpt).values()]
        self.step = make_step(self.gpt, config, ranks, LAST, changes.append)
        self.notes = [describe(change) for change in changes]
        source = self.source(folder, ClipLimits.from_config(config, self.gpt))
        self.lengths, self.plan = source.lengths, UpdatePlan.from_config(config, source.lengths)
        spec = BatchSpec(config.batch_size, config.batch_tokens)
        loader = make_loader(source, self.plan, SpecialTokens.from_model(self.gpt), spec, config, ignore)
        self.updates = loader.run(0, LAST)

    def source(self, folder: Path, limits: ClipLimits) -> FeatureSource:
        """Return what the clips are read from."""
        encoder, tokenizer = AudioEncoder.load(folder / MODEL), Tokenizer.load(folder / MODEL)
        keys = encoder.fingerprint, features.text_fingerprint(tokenizer, LANGUAGE)
        store = FeatureStore.open(folder / DATASET, *keys)
        return select_clips(store, load_dataset(folder / DATASET).kept, limits)[0]

    def round(self, updates: int) -> Round:
        """Make some updates and tell what they took."""
        began, worked = time.perf_counter(), time.process_time()
        waited, clips, samples = 0.0, 0, 0
        for _ in range(updates):
            asked = time.perf_counter()
            update = next(self.updates)
            waited += time.perf_counter() - asked
            self.step.run(update)
            clips += update.clips
            samples += int(self.lengths.samples[self.plan[update.number].clips].sum())
        return Round(time.perf_counter() - began, time.process_time() - worked, waited, clips, samples / RATE)

    def save(self, name: str) -> None:
        """Save the weights, adapters included."""
        torch.save(merged_state(self.gpt), self.folder / f"{name}.pth")


class Padded(Ours):
    """Ours with references as coqui computes them: padded with silence to 6 s."""

    def source(self, folder: Path, limits: ClipLimits) -> FeatureSource:
        """Return a source that pads."""
        silence = np.log(SILENT_POWER) / torch.load(folder / MODEL / MEL_FILE).numpy()
        return _PaddedSource(super().source(folder, limits), silence)


class _PaddedSource(FeatureSource):
    def __init__(self, source: FeatureSource, silence: npt.NDArray[np.float32]) -> None:
        super().__init__(source.features, source.clips, source.lengths)
        self.padding = np.tile(silence.astype(np.float16), (REFERENCE_FRAMES, 1))

    def read(self, clip: int, reference: int, start: int, frames: int) -> Example:
        """Read a clip and pad its reference."""
        example = super().read(clip, reference, start, frames)
        return example._replace(mel=np.concatenate([example.mel, self.padding])[:REFERENCE_FRAMES])
