"""Our training: features made once, then the very pieces that a run is made of, without its files and events."""

import math
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from benchmarks.training_data import LANGUAGE, RATE, Material
from benchmarks.training_plan import Plan, Round
from utils.config import TrainConfig
from utils.core.wording import describe
from utils.dataset import features
from utils.dataset.features import FeatureStore
from utils.media.rates import FRAME_SAMPLES
from utils.training.batches import BatchSpec, UpdatePlan, compile_lengths
from utils.training.clips import ClipLimits, FeatureSource, select_clips
from utils.training.data_loader import Update, UpdateLoader, eval_batches
from utils.training.distribution import Ranks, make_accelerator
from utils.training.ema import Ema
from utils.training.optimizers import make_optimizer, make_schedule
from utils.training.packing import Example, PackedGpt, SpecialTokens
from utils.training.speedups.dropout import set_dropout
from utils.training.step import Evaluator, TrainStep
from utils.training_optimizations import TrainingOptimizer
from utils.xtts.adapters import merged_state
from utils.xtts.codec import AudioEncoder
from utils.xtts.files import MEL_FILE
from utils.xtts.model import load_gpt
from utils.xtts.tokenizer import Tokenizer

if TYPE_CHECKING:
    from utils.core.facts import Fact

LAST = 10**6  # updates; the benchmark ends before
SILENT_POWER = 1e-5  # of a mel band, the lowest that coqui's spectrogram returns
REFERENCE_FRAMES = math.ceil(6 * RATE / FRAME_SAMPLES)  # coqui's longest reference, to which it pads all


class OurSide:
    """Our loop over the clips of a plan, whose features are there already; put together as ``utils.gpt_train`` does."""

    reads_with = "the feature store"

    def __init__(self, plan: Plan, material: Material) -> None:
        self.config = config = config_of(plan, material)
        switches = TrainingOptimizer.from_config(config)
        self.ranks = Ranks(make_accelerator(config, switches.get_mixed_precision_config().dtype, material.folder))
        device = self.ranks.accelerator.device
        torch.manual_seed(plan.seed)
        self.gpt: Any = load_gpt(material.model)
        acted = [set_dropout(self.gpt, config.dropout), *switches.apply(self.gpt).values()]

        source, _ = select_clips(_store(material), material.clips(), ClipLimits.from_config(config, self.gpt))
        self.source = self.prepared(source, material)
        self.tokens, self.plan = SpecialTokens.from_model(self.gpt), UpdatePlan.from_config(config, self.source.lengths)
        grid = compile_lengths(self.source.lengths) if config.use_compile else ()
        self.share = BatchSpec(config.batch_size, config.batch_tokens, grid=grid)
        self.packed = PackedGpt(self.gpt.to(device), config.label_smoothing)
        optimizer, change = make_optimizer(self.packed, config, device)
        schedule = make_schedule(optimizer, config.lr_scheduler, LAST, config.warmup_steps, config.warmup_share)
        ema = Ema(self.gpt, config.ema_decay, config.ema_device) if config.enable_ema else None
        self.model, prepared = self.ranks.prepare(self.packed, optimizer)
        self.warnings: list[Fact] = []
        self.stepper = TrainStep(config, self.ranks, self.model, prepared, schedule, ema, self.warnings.append)
        pin = device.type == "cuda"
        loader = UpdateLoader(
            self.source, self.plan, self.tokens, self.share, workers=max(0, config.num_workers), pin=pin
        )
        self.updates, self.waited = loader.run(0, LAST), 0.0
        self.acted = [describe(one) for one in [*acted, change]]

    def prepared(self, source: FeatureSource, _: Material) -> FeatureSource:
        """Return what the clips are read from."""
        return source

    def round(self, updates: int) -> Round:
        """Make some updates and tell what they took."""
        began, worked = time.perf_counter(), time.process_time()
        sound, clips, loss = 0.0, 0, 0.0
        for update in self._some(updates):
            loss = self.stepper.run(update).loss
            clips += update.clips
            sound += float(self.source.lengths.samples[self.plan[update.number].clips].sum()) / RATE
        return Round(time.perf_counter() - began, time.process_time() - worked, clips, sound, loss)

    def _some(self, updates: int) -> Iterator[Update]:
        for _ in range(updates):
            asked = time.perf_counter()
            update = next(self.updates)
            self.waited += time.perf_counter() - asked
            yield update

    def loss(self) -> float:
        """Return the mean loss over all clips, without dropout and smoothing, as our evaluation does it."""
        batches = partial(eval_batches, self.source, self.tokens, self.share)
        with self._sharp():
            return Evaluator(self.model, batches, self.ranks, self.config.text_loss_weight).losses().loss

    @contextmanager
    def _sharp(self) -> Iterator[None]:
        """Leave label smoothing out, so that losses can be compared."""
        smoothing, self.packed.label_smoothing = self.packed.label_smoothing, 0.0
        try:
            yield
        finally:
            self.packed.label_smoothing = smoothing

    def weights(self) -> dict[str, Tensor]:
        """Return the weights of the GPT, adapters included."""
        return merged_state(self.gpt)

    def loading_seconds(self) -> float:
        """Return how long it has waited for its loader."""
        return self.waited

    def changes(self) -> list[str]:
        """Say what the switches changed, and what went wrong since."""
        return [*self.acted, *map(describe, self.warnings)]


class PaddedSide(OurSide):
    """Ours with references as coqui computes them: padded with silence to 6 s."""

    def prepared(self, source: FeatureSource, material: Material) -> FeatureSource:
        """Return a source that pads."""
        stats = torch.load(material.model / MEL_FILE)
        return _PaddedSource(source, np.log(SILENT_POWER) / stats.numpy())


class _PaddedSource(FeatureSource):
    def __init__(self, source: FeatureSource, silence: npt.NDArray[np.float32]) -> None:
        super().__init__(source.features, source.clips, source.lengths)
        self.padding = np.tile(silence.astype(np.float16), (REFERENCE_FRAMES, 1))

    def read(self, clip: int, reference: int, start: int, frames: int) -> Example:
        """Read a clip and pad its reference."""
        example = super().read(clip, reference, start, frames)
        return example._replace(mel=np.concatenate([example.mel, self.padding])[:REFERENCE_FRAMES])


def config_of(plan: Plan, material: Material) -> TrainConfig:
    """Return our configuration under a plan: fp32, the batch and rate of coqui, then the plan's own settings."""
    settings: dict[str, object] = {
        "custom_model": str(material.model),
        "language": LANGUAGE,
        "batch_size": plan.batch,
        "grad_acumm": plan.accumulation,
        "learning_rate": plan.rate,
        "lr_scheduler": "constant",
        "warmup_steps": 0,
        "enable_mixed_precision": False,
        "seed": plan.seed,
    }
    return TrainConfig.parse(settings | plan.settings, source="the benchmark")


def encode(plan: Plan, material: Material, passes: int = 1) -> tuple[float, float]:
    """Make the features of all clips anew, some times, and return the medians of seconds and processor seconds.

    The loading of the DVAE counts; the import of coqui's modules, in the first pass, is part of that pass alone.
    """
    torch.set_num_threads(plan.threads)
    seconds, work = zip(*(_encoded(plan, material) for _ in range(passes)), strict=True)
    return median(seconds), median(work)


def _encoded(plan: Plan, material: Material) -> tuple[float, float]:
    shutil.rmtree(material.dataset / features.FOLDER, ignore_errors=True)
    began, worked = time.perf_counter(), time.process_time()
    encoder, tokenizer = AudioEncoder.load(material.model, plan.device), Tokenizer.load(material.model)
    if problems := features.build(material.dataset, material.clips(), encoder, tokenizer, LANGUAGE):
        raise RuntimeError(f"{problems} clips could not be encoded")
    return time.perf_counter() - began, time.process_time() - worked


def _store(material: Material) -> FeatureStore:
    encoder, tokenizer = AudioEncoder.load(material.model), Tokenizer.load(material.model)
    return FeatureStore.open(material.dataset, encoder.fingerprint, features.text_fingerprint(tokenizer, LANGUAGE))
