"""Every benchmark there is: what it measures, against what, how it is started, and what its result files are called."""

from dataclasses import dataclass
from typing import Literal

Device = Literal["cpu", "cuda"]
LITTLE = "--layers 1 --dim 64 --threads 1 --rounds 1"  # toys show that something works, not how fast it is
LITTLE_TRAINING = "training.py --layers 1 --dim 64 --threads 1 --clips 4 --batch 2"
COQUI = "plain coqui-tts"


@dataclass(frozen=True)
class Benchmark:
    """A program with its words.

    Attributes:
        name: What ``--only`` takes.
        measures: What it measures.
        against: What it compares with.
        words: The program in this folder and what it is given.
        toy: The same with the smallest sizes.
        finding: How the names of its result files begin, before the machine and the date.
        device: Where it computes.
    """

    name: str
    measures: str
    against: str
    words: str
    toy: str
    finding: str
    device: Device = "cpu"

    @property
    def command(self) -> str:
        """Return what a person types."""
        return f"python benchmarks/{self.words}"


BENCHMARKS = (
    Benchmark(
        "training",
        "training, 6 layers x 512, from the same weights: clips per second, processor time, peak memory, loss",
        COQUI,
        "training.py --clips 32",
        f"{LITTLE_TRAINING} --rounds 1 --updates 1",
        "training_6x512",
    ),
    Benchmark(
        "training-12x768",
        "the same with 12 layers x 768",
        COQUI,
        "training.py --layers 12 --dim 768 --clips 16 --rounds 2",
        f"{LITTLE_TRAINING} --rounds 1 --updates 1",
        "training_12x768",
    ),
    Benchmark(
        "training-30x1024",
        "the same with 30 layers x 1024: a few updates, one side after another, since memory holds one",
        COQUI,
        "training.py --layers 30 --dim 1024 --batch 2 --clips 4 --rounds 2 --sequential",
        f"{LITTLE_TRAINING} --rounds 1 --updates 1 --sequential",
        "training_30x1024",
    ),
    Benchmark(
        "switches",
        "speed, peak memory and loss of each training switch, 2 layers x 128",
        "our own defaults",
        "training.py --switches",
        f"{LITTLE_TRAINING} --switches --updates 4 --only baseline Adafactor",
        "training_switches",
    ),
    Benchmark(
        "speech",
        "speech from text at full size, 30 layers x 1024: one sentence, eight texts, first audio, memory",
        COQUI,
        "speech.py",
        f"speech.py {LITTLE} --heads 1 --codes 24 --sentences 2",
        "speech_30x1024",
    ),
    Benchmark(
        "speech-small",
        "the same with 6 layers x 512",
        COQUI,
        "speech.py --layers 6 --dim 512 --heads 8",
        f"speech.py {LITTLE} --heads 1 --codes 24 --sentences 2 --precisions fp32",
        "speech_6x512",
    ),
    Benchmark(
        "decoding",
        "the GPT alone, 6 layers x 512: time per code in each precision, one to eight sentences at a time",
        f"{COQUI}'s `generate`, with and without its second pass",
        "decoding.py --layers 6 --dim 512 --heads 8",
        f"decoding.py {LITTLE} --heads 1 --codes 8 --sentences 1 2 --precisions fp32 int8",
        "decoding_6x512",
    ),
    Benchmark(
        "serving",
        "the speech server with eight callers at once: lost answers, waiting time, memory over time",
        "nothing: no answer may be lost, and memory must level off",
        "serving.py --seconds 600",
        "serving.py --seconds 5 --callers 2",
        "serving",
    ),
    Benchmark(
        "training-gpu",
        "training as above at full size, mixed precision and gradient checkpointing on our side",
        COQUI,
        "training.py --device cuda --layers 30 --dim 1024",
        f"{LITTLE_TRAINING} --device cuda --rounds 1 --updates 1",
        "training_30x1024",
        "cuda",
    ),
    Benchmark(
        "switches-gpu",
        "each training switch at full size",
        "our own defaults",
        "training.py --device cuda --layers 30 --dim 1024 --switches",
        f"{LITTLE_TRAINING} --device cuda --switches --updates 4 --only baseline Adafactor",
        "training_switches",
        "cuda",
    ),
    Benchmark(
        "speech-gpu",
        "speech from text at full size, a batch of 32 sentences",
        COQUI,
        "speech.py --device cuda --precisions fp32 fp16 --sentences 32",
        f"speech.py {LITTLE} --heads 1 --codes 24 --device cuda --precisions fp32 fp16 --sentences 2",
        "speech_30x1024",
        "cuda",
    ),
    Benchmark(
        "decoding-gpu",
        "the GPT alone at full size",
        f"{COQUI}'s `generate`, with and without its second pass",
        "decoding.py --device cuda --precisions fp32 fp16",
        f"decoding.py {LITTLE} --heads 1 --codes 8 --device cuda --precisions fp32 fp16 --sentences 1 2",
        "decoding_30x1024",
        "cuda",
    ),
)


def of_device(device: Device) -> list[Benchmark]:
    """Return the benchmarks that compute there."""
    return [one for one in BENCHMARKS if one.device == device]
