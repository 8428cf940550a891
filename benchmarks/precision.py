"""Compare a precision with fp32: the codes that it would choose, and its audio for the same codes.

Both get the codes that fp32 generates, so that one different code does not change all that follow. The exit code is 1
when fewer than 97 % agree.

    python -m benchmarks.precision --model mine --precision int8
"""

import argparse
import sys
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from utils.config import SpeechConfig
from utils.config.flags import add_flags, read_flags
from utils.evaluation.sentences import built_in_sentences
from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE
from utils.speech.decoder import Decoder
from utils.speech.types import Sentence, Voice
from utils.speech.vocoder import Vocoder
from utils.studio.loading import chosen_voice

WINDOW, STEP, BANDS = 1024, 256, 80  # of the log-mel, in samples and bands
QUIET = 1e-3  # of the loudest band: 60 dB below it counts as silence
ENOUGH = 0.97  # share of codes on which a cheaper precision has to agree

Spoken = Sequence[tuple[Sentence, Tensor]]  # sentences and their codes


class Agreement(NamedTuple):
    """How often two precisions of a GPT find the same next code most likely, given the same codes before it."""

    positions: int  # codes that were compared
    same: int  # on which both agree

    @property
    def is_enough(self) -> bool:
        return self.same >= ENOUGH * self.positions

    def __str__(self) -> str:
        return f"{self.same / max(self.positions, 1):.1%} of {self.positions} codes agree"


def agreement(exact: Decoder, cheap: Decoder, spoken: Spoken, prompt: Tensor) -> Agreement:
    same = [
        exact.score(sentence, prompt, codes)[0].argmax(-1) == cheap.score(sentence, prompt, codes)[0].argmax(-1)
        for sentence, codes in spoken
    ]
    return Agreement(sum(map(len, same)), sum(int(each.sum()) for each in same))


def sound_distance(
    exact: tuple[Decoder, Vocoder], cheap: tuple[Decoder, Vocoder], spoken: Spoken, voice: Voice
) -> float:
    """Return the mean distance in dB between the audio that two precisions make of the same codes."""
    total, samples = 0.0, 0
    for sentence, codes in spoken:
        sound, other = (
            vocoder.sound(decoder.score(sentence, voice.prompt, codes)[1][: len(codes)], voice.embedding)
            for decoder, vocoder in (exact, cheap)
        )
        total += distance(sound, other) * sound.size
        samples += sound.size
    return total / max(samples, 1)


def distance(first: Samples, second: Samples) -> float:
    """Return the mean distance of two sounds of the same length in dB, over time and mel bands.

    Anything 60 dB below the loudest band of the first sound counts as silence.
    """
    if not len(first):
        return 0.0
    mels = _mel(first), _mel(second)
    floor = max(float(mels[0].max()) * QUIET, torch.finfo(torch.float32).tiny)
    levels = [20 * mel.clamp(min=floor).log10() for mel in mels]
    return float((levels[0] - levels[1]).abs().mean())


def _mel(sound: Samples) -> Tensor:
    from torchaudio.functional import melscale_fbanks

    samples = torch.from_numpy(sound).float()
    samples = functional.pad(samples, (0, max(0, WINDOW - len(samples))))
    spectrum = torch.stft(samples, WINDOW, STEP, window=torch.hann_window(WINDOW), return_complex=True).abs()
    bands: Tensor = melscale_fbanks(WINDOW // 2 + 1, 0.0, OUTPUT_RATE / 2, BANDS, OUTPUT_RATE, norm="slaney")
    return bands.T @ spectrum


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=8, help="number of built-in sentences (default: 8)")
    parser.add_argument("text", nargs="*", help="your own sentences")
    add_flags(parser, SpeechConfig)
    arguments = parser.parse_args(words)
    config = read_flags(arguments, SpeechConfig)
    texts = arguments.text or [each.text for each in built_in_sentences(config.language)[: arguments.count]]
    exact = chosen_voice(config.model_copy(update={"precision": "fp32"}))
    cheap = chosen_voice(config)
    voice = exact.voice(config.reference)
    sentences = [sentence for text in texts for sentence in exact.plan(text, config).sentences]
    generations = exact.decoder.generate(sentences, voice.prompt, config)
    spoken = [(part, torch.tensor(made.codes)) for part, made in zip(sentences, generations, strict=True)]
    agreed = agreement(exact.decoder, cheap.decoder, spoken, voice.prompt)
    decibels = sound_distance((exact.decoder, exact.vocoder), (cheap.decoder, cheap.vocoder), spoken, voice)
    print(f"{exact.model.name}: GPT in {cheap.precision.gpt}, vocoder in {cheap.precision.vocoder}, against fp32:")
    print(f"{agreed}; the audio of the same codes is {decibels:.2f} dB apart.")
    if not agreed.is_enough:
        sys.stderr.write("Fewer than 97 % agree: use --precision fp32 with this model.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
