"""How the embedded voice is made: the settings of every stage, at full size and as small as tests need it.

The sizes keep the whole folder below 40 MB and a step of each training within seconds on one core.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Corpus:
    """What is spoken."""

    sentences: int = 2_000  # at most, to learn from; a tenth as many are held out
    takes: int = 6  # speakers of each sentence
    phrases: int = 9_000  # pieces of the sentences, each by one speaker
    word_lists: int = 9_000  # words of the lexicon in any order
    mixed: float = 0.25  # share of both that is learnt among the sentences
    judged: int = 120  # held-out sentences, and as many held-out phrases, that losses are measured on
    seed: int = 1


@dataclass(frozen=True)
class Dvae:
    """The codebook and its training."""

    hidden: int = 96  # channels of the first layer
    width: int = 192  # of a code's vector
    codes: int = 1_024  # as many as XTTS has: fewer do not hold the pitch of twenty speakers
    steps: int = 4_000
    clips: int = 4_000  # spread over all: two hours say enough of the sounds of a language
    crops: int = 48
    frames: int = 128  # of 12 ms, in a crop
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
    """One run of ``train_gpt``."""

    updates: int  # 0 leaves it out
    clips: int  # of an update
    batch: int  # clips that are computed at the same time
    rate: float
    warmup: int = 200  # updates


@dataclass(frozen=True)
class Gpt:
    """The GPT and both runs that train it."""

    layers: int = 6
    dim: int = 256
    heads: int = 4
    phrases: GptTraining = field(default_factory=lambda: GptTraining(updates=2_500, clips=32, batch=32, rate=1e-3))
    sentences: GptTraining = field(default_factory=lambda: GptTraining(updates=5_000, clips=16, batch=16, rate=6e-4))
    dropout: float = 0.0  # without any, a CPU has a faster attention
    evaluate: int = 250  # updates between two evaluations
    save: int = 250
    seed: int = 3


@dataclass(frozen=True)
class SpeakerEncoder:
    """The speaker encoder and its training."""

    filters: tuple[int, int, int, int] = (8, 16, 32, 32)  # of the four stages
    steps: int = 400
    crops: int = 24
    seconds: float = 1.5
    rate: float = 2e-3
    seed: int = 4


@dataclass(frozen=True)
class Vocoder:
    """The generator, its discriminators and their training."""

    channels: int = 128  # of the first layer
    discriminators: int = 8  # channels of their first layers
    clips: int = 4_000  # whose latents are learnt from
    alone: int = 1_000  # steps before the discriminators join
    steps: int = 16_000
    crops: int = 6
    codes: int = 10  # of 46 ms, in a crop
    rate: float = 5e-4
    judged: int = 8  # clips that the distance is measured on
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
    "short": Recipe(  # a session of two hours on a share of two cores, from an earlier voice
        corpus=Corpus(takes=2, phrases=3_000, word_lists=3_000, mixed=1.0),
        dvae=Dvae(clips=1_500, steps=1_000, rate=4e-4),
        gpt=Gpt(
            phrases=GptTraining(updates=0, clips=16, batch=16, rate=5e-4),
            sentences=GptTraining(updates=900, clips=16, batch=16, rate=5e-4, warmup=40),
            evaluate=100,
            save=50,
        ),
        speaker_encoder=SpeakerEncoder(steps=120, rate=1e-3),
        vocoder=Vocoder(clips=700, alone=300, steps=1_500, crops=4, codes=14, judged=5),
    ),
    "longer": Recipe(  # an hour and a half on two cores, from an earlier voice whose codes and speaker encoder stay
        corpus=Corpus(takes=3, phrases=3_000, word_lists=3_000, mixed=1.0),
        dvae=Dvae(clips=200, steps=0),
        gpt=Gpt(
            phrases=GptTraining(updates=0, clips=16, batch=16, rate=8e-4),
            sentences=GptTraining(updates=3_000, clips=16, batch=16, rate=8e-4, warmup=60),
            evaluate=200,
            save=100,
        ),
        speaker_encoder=SpeakerEncoder(steps=0),
        vocoder=Vocoder(clips=700, alone=1_700, steps=1_700, codes=14, rate=4e-4, judged=5),
    ),
    "toy": Recipe(
        corpus=Corpus(sentences=10, takes=8, phrases=10, word_lists=6, judged=4),
        dvae=Dvae(hidden=16, width=16, codes=32, steps=6, crops=4, frames=64),
        gpt=Gpt(layers=2, dim=64, phrases=TOY_LESSON, sentences=TOY_LESSON, evaluate=3, save=2),
        speaker_encoder=SpeakerEncoder(steps=3, crops=4, seconds=0.6),
        vocoder=Vocoder(channels=32, discriminators=2, clips=6, alone=1, steps=3, crops=2, codes=6, judged=1),
        checks=Checks(retrieved=3, spoken=3, voices=1),
    ),
}
