"""How the embedded voice is made: the settings of every stage, at full size and as small as tests need it.

The sizes keep the whole folder below 40 MB and a step of each training within seconds on one core.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Corpus:
    """What is spoken.

    Attributes:
        sentences: Most sentences that are learnt from; the same share is held out for judging.
        takes: Voices that speak each of them.
        phrases: Short pieces cut from them, each spoken by one voice.
        mixed: Share of the pieces that are learnt on among the sentences.
        judged: Takes of held-out sentences, and as many of held-out phrases, that losses are measured on.
        seed: Start of all that is random.
    """

    sentences: int = 2_000
    takes: int = 4
    phrases: int = 12_000
    mixed: float = 0.2
    judged: int = 120
    seed: int = 1


@dataclass(frozen=True)
class Dvae:
    """How sound becomes codes.

    Attributes:
        hidden: Channels of the first layer.
        width: Numbers of a code.
        codes: How many codes there are.
        steps: Updates.
        crops: Pieces of sound in an update.
        frames: Length of each, in frames of 12 ms.
        rate: Highest learning rate.
        seed: Start of all that is random.
    """

    hidden: int = 80
    width: int = 128
    codes: int = 512
    steps: int = 1_600
    crops: int = 48
    frames: int = 128
    rate: float = 6e-4
    seed: int = 2


@dataclass(frozen=True)
class Codes:
    """What is kept of each clip beside its codes.

    Attributes:
        reference_seconds: Seconds of reference audio, from other clips of the speaker.
    """

    reference_seconds: int = 1


@dataclass(frozen=True)
class GptTraining:
    """One run of ``train_gpt``.

    Attributes:
        updates: How many.
        clips: Clips of an update.
        batch: Clips that are computed at the same time.
        rate: Highest learning rate.
        warmup: Updates over which it rises.
    """

    updates: int
    clips: int
    batch: int
    rate: float
    warmup: int = 200


@dataclass(frozen=True)
class Gpt:
    """How texts become codes.

    Attributes:
        layers: Layers.
        dim: Width.
        heads: Heads of the attention.
        phrases: The first lesson: short pieces.
        sentences: The second one: sentences, with some of the pieces among them.
        dropout: Share of the activations left out; without any, a CPU has a faster attention.
        evaluate: Updates between two evaluations.
        save: Updates between two saves.
        seed: Start of all that is random.
    """

    layers: int = 6
    dim: int = 256
    heads: int = 4
    phrases: GptTraining = field(default_factory=lambda: GptTraining(updates=1_250, clips=32, batch=32, rate=1e-3))
    sentences: GptTraining = field(default_factory=lambda: GptTraining(updates=1_900, clips=16, batch=16, rate=6e-4))
    dropout: float = 0.0
    evaluate: int = 250
    save: int = 250
    seed: int = 3


@dataclass(frozen=True)
class SpeakerEncoder:
    """How voices are told apart.

    Attributes:
        filters: Filters of the four stages.
        steps: Updates.
        crops: Pieces of sound in an update.
        seconds: Length of each.
        rate: Highest learning rate.
        seed: Start of all that is random.
    """

    filters: tuple[int, int, int, int] = (8, 16, 32, 32)
    steps: int = 240
    crops: int = 24
    seconds: float = 1.5
    rate: float = 2e-3
    seed: int = 4


@dataclass(frozen=True)
class Vocoder:
    """How what the GPT says becomes sound.

    Attributes:
        channels: Channels of the first layer.
        clips: Clips whose latents are learnt from.
        steps: Updates.
        crops: Pieces of sound in an update.
        codes: Length of each, in codes of 46 ms.
        rate: Highest learning rate.
        judged: Clips that the distance is measured on as it learns.
        seed: Start of all that is random.
    """

    channels: int = 128
    clips: int = 2_000
    steps: int = 1_600
    crops: int = 6
    codes: int = 10
    rate: float = 1e-3
    judged: int = 8
    seed: int = 5


@dataclass(frozen=True)
class Checks:
    """What the finished voice is asked.

    Attributes:
        retrieved: Unseen sentences, each of which has to be nearest to its own rendering.
        spoken: Sentences that have to come to an end.
        voices: Trained voices that speak them in turn.
    """

    retrieved: int = 50
    spoken: int = 200
    voices: int = 2


@dataclass(frozen=True)
class Recipe:
    """All of it."""

    corpus: Corpus = field(default_factory=Corpus)
    dvae: Dvae = field(default_factory=Dvae)
    codes: Codes = field(default_factory=Codes)
    gpt: Gpt = field(default_factory=Gpt)
    speaker_encoder: SpeakerEncoder = field(default_factory=SpeakerEncoder)
    vocoder: Vocoder = field(default_factory=Vocoder)
    checks: Checks = field(default_factory=Checks)


TOY_LESSON = GptTraining(updates=3, clips=4, batch=4, rate=1e-3, warmup=1)
RECIPES = {
    "full": Recipe(),
    "toy": Recipe(
        corpus=Corpus(sentences=10, takes=2, phrases=16, judged=4),
        dvae=Dvae(hidden=16, width=16, codes=32, steps=6, crops=4, frames=64),
        gpt=Gpt(layers=2, dim=64, phrases=TOY_LESSON, sentences=TOY_LESSON, evaluate=3, save=2),
        speaker_encoder=SpeakerEncoder(steps=3, crops=4, seconds=0.6),
        vocoder=Vocoder(channels=32, clips=6, steps=3, crops=2, codes=6, judged=1),
        checks=Checks(retrieved=3, spoken=3, voices=1),
    ),
}
