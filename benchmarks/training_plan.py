"""What both sides of the training benchmark are told, and what they answer."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Plan:
    """The conditions of a comparison.

    Attributes:
        device: Where both compute.
        layers: Layers of the GPT.
        dim: Width of the GPT.
        batch: Clips on the device at once.
        accumulation: Batches summed before an update.
        clips: Clips in all.
        threads: Threads of each side; it works while the other one waits.
        workers: Loading processes of plain coqui.
        rate: Learning rate of both; it costs no time.
        seed: Of the clips, of the weights and of the order.
        settings: Further fields of our configuration.
    """

    device: str = "cpu"
    layers: int = 6
    dim: int = 512
    batch: int = 8
    accumulation: int = 1
    clips: int = 64
    threads: int = 2
    workers: int = 0
    rate: float = 1e-4
    seed: int = 0
    settings: dict[str, object] = field(default_factory=dict)

    @property
    def heads(self) -> int:
        """Return the number of heads: 64 wide each, as the published model has them."""
        return max(1, self.dim // 64)

    @property
    def epoch(self) -> int:
        """Return the number of updates in which each clip is read once."""
        return -(-self.clips // (self.batch * self.accumulation))


@dataclass(frozen=True)
class Round:
    """What some updates took.

    Attributes:
        seconds: By the clock.
        work: Seconds of all processors together; other programs on the machine do not count.
        clips: Clips that were learned from.
        sound: Seconds of sound in them.
        loss: Of the last update.
    """

    seconds: float
    work: float
    clips: int
    sound: float
    loss: float

    @property
    def speed(self) -> float:
        """Return the clips a second."""
        return self.clips / self.seconds


@dataclass(frozen=True)
class Memory:
    """What a process has needed, in MiB.

    Attributes:
        start: RAM before anything was built, torch included.
        peak: Most RAM, from the start of the process on.
        training: Most RAM since everything was built.
        device: Most memory of the GPU, as torch's allocator counts it.
    """

    start: float
    peak: float
    training: float
    device: float
