"""What happens while a model is trained, as typed facts."""

from typing import Literal

from utils.core.facts import Fact, WarningFact

Shares = dict[str, float]


# Why a clip is not trained on.
Exclusion = Literal["no_features", "too_short", "too_long", "long_text", "model_text", "many_codes", "no_text"]


# Why a run continues from something other than its last save.
Cause = Literal["missing", "damaged"]


# The data of a run


class Aside(Fact):
    """A clip that is not used."""

    clip: str
    reason: Exclusion
    limit: float = 0
    seconds: float = 0
    tokens: int = 0
    codes: int = 0


class Clips(Fact):
    """How many clips of a list are used."""

    split: str
    used: int
    aside: int = 0


class Lengths(Fact):
    """How many of the training clips have which length, in seconds and in tokens."""

    seconds: dict[str, int] = {}  # noqa: RUF012  # never changed
    tokens: dict[str, int] = {}  # noqa: RUF012


class Features(Fact):
    """All clips are encoded."""

    clips: int
    problems: int = 0


class Codec(Fact):
    """How well the codec of the base model represents the clips, in dB of its error."""

    codec: str
    error_db: float | None = None
    sample_error_db: float | None = None  # on the sample speech
    codes_used: float | None = None  # share of its codes
    perplexity: float | None = None


class CodecFitsBadly(WarningFact):
    """The codec loses more of these clips than of the sample speech."""

    error_db: float
    sample_error_db: float


class Replay(Fact):
    """How many clips of each language an epoch has."""

    counts: dict[str, int] | tuple[int, ...]


class References(Fact):
    """What the model hears of the audio that it learns, as shares."""

    other_clip: float
    masked: float
    heard_unmasked: float


# The model and the device


class LayersChanged(Fact):
    """Layers of the model that an optimization changed."""

    how: str
    gpt: int
    encoder: int = 0
    perceiver: int = 0


class ParametersFrozen(Fact):
    """Parameters that are no longer trained."""

    parameters: int


class WeightsGrouped(Fact):
    """The optimizer, and the weights with and without decay."""

    optimizer: str
    decayed: int
    others: int


class DeviceLacks(Fact):
    """The device has no support for a setting."""

    device: str


class ByteDropoutIdle(Fact):
    """Byte dropout does nothing here: it is part of fused attention on a CPU."""


class MemoryLimit(Fact):
    """Bytes of the GPU that a run may use."""

    limit: int
    total: int


class SameNumbers(Fact):
    """Each run with the same seed computes the same numbers, digit by digit."""


class Tf32(Fact):
    """Whether matrix products and convolutions use TF32."""

    on: bool


class TextRead(Fact):
    """In what form the model reads texts."""

    mode: str


class WhatIsOn(Fact):
    """The active optimizations, read from the live model."""

    parts: dict[str, str | int]
    kernels: tuple[str, ...] = ()  # of attention, in the first batch


class MemoryPlan(Fact):
    """The memory that a run needs at its peak, in bytes."""

    fits: bool
    parts: dict[str, int] = {}  # noqa: RUF012
    needed: int = 0
    available: int = 0


class MemoryShort(WarningFact):
    """A run needs more memory than there is."""

    needed: int
    available: int


class MemoryUnknown(WarningFact):
    """The memory that a run needs could not be estimated."""

    error: str


class BatchSize(Fact):
    """The batch size that was found."""

    batch_size: int
    grad_acumm: int = 0


class Loading(Fact):
    """How clips are read: by so many processes, or by a thread."""

    workers: int
    pinned: bool


class GpuTest(Fact):
    """The settings of a run are tested on the GPU."""

    device: str


class GpuTestFailed(WarningFact):
    """The test of the GPU ended with an error."""

    error: str


class SettingReplaced(WarningFact):
    """A setting failed in the test of the GPU, so another value is used."""

    switch: str
    used: str
    reason: str


class TrackerFailed(WarningFact):
    """A tracker of experiments does not work."""

    tracker: str
    error: str


# The training


class Train(Fact):
    """An update."""

    step: int
    epoch: float = 0.0
    loss: float | None = None
    loss_text: float | None = None
    loss_audio: float | None = None
    grad_norm: float | None = None
    learning_rate: float | None = None
    samples_per_second: float | None = None
    tokens_per_second: float | None = None
    padding: float | None = None
    data_share: float | None = None
    memory_gb: float | None = None
    seconds_left: float | None = None


class Evaluation(Fact):
    """The losses on the evaluation clips."""

    step: int
    epoch: float = 0.0
    loss: float | None = None
    loss_text: float | None = None
    loss_audio: float | None = None
    loss_without_ema: float | None = None
    loss_other_languages: float | None = None  # the mean of them
    languages: Shares = {}  # noqa: RUF012  # the loss of each


class Sample(Fact):
    """A sample sentence was spoken."""

    step: int
    text: str
    file: str
    recording: str = ""  # of the same words, if the dataset has one


class Scores(Fact):
    """Scores of the spoken sentences, from 0 to 1."""

    step: int
    intelligibility: float | None = None
    endings: float | None = None
    duration: float | None = None
    similarity: float | None = None
    composite: float | None = None


class Saved(Fact):
    """The run can resume after this step."""

    step: int


class Checkpoint(Fact):
    """A checkpoint was written."""

    step: int
    folder: str
    best: bool = False


class Resumed(Fact):
    """The run continues after this step."""

    step: int
    epoch: float = 0.0


class Offer(Fact):
    """A run was stopped; its best checkpoint can become the model of the project."""

    step: int
    run: str = ""
    project: str = ""  # as it follows --project


class Ready(Fact):
    """The model of the project was written."""

    folder: str


class EmbeddingWarmupEnded(Fact):
    """From this update on, all weights are trained."""

    step: int


class TrainingWaitsForClips(WarningFact):
    """Reading takes a large share of the time."""

    share: float


class GpuMemoryFull(WarningFact):
    """Updates became slow while the memory of the GPU was full: Windows moves what does not fit to RAM."""

    slower: float  # times the usual


class UpdateSkipped(WarningFact):
    """An update was left out, because its numbers are not finite."""

    loss: float
    norm: float  # of the gradient
    clips: tuple[str, ...] = ()


class ScaleLowered(WarningFact):
    """An update was left out, because its gradient was too large for the loss scale of fp16."""

    norm: float
    scale: float


class RolledBack(WarningFact):
    """Several updates in a row were not finite, so the run went back to its last save, at half the learning rate."""

    step: int
    updates: int
    last: WarningFact


class BatchesHalved(WarningFact):
    """Memory ran out, so batches have fewer clips from now on."""

    clips: int
    half: int


class Overfitting(WarningFact):
    """The evaluation loss rises while the training loss falls."""

    evaluations: int
    loss_from: float
    loss_to: float
    train_from: float
    train_to: float


class SamplesFailed(WarningFact):
    """The samples of a step, or one of them, could not be spoken or scored."""

    step: int
    error: str
    text: str = ""


class OptimizerStartsAnew(WarningFact):
    """The test of the GPU gave another result than before, so a run continues with another optimizer and no moments."""

    optimizer: str


class RunStartsAnew(WarningFact):
    """Nothing of a run was saved."""

    lost: int  # updates


class CheckpointContinued(WarningFact):
    """A run continues from a checkpoint instead of its last save."""

    step: int
    cause: Cause
    lost: int  # updates
