"""Compare a precision with fp32: the codes that it would choose, and its audio for the same codes.

Both get the codes that fp32 generates, so that one different code does not change all that follow. The exit code is 1
when fewer than 97 % agree.
"""

import argparse
import sys

from utils.config import SpeechConfig
from utils.config.flags import add_flags, read_flags


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=int, default=8, help="number of built-in sentences (default: 8)")
    parser.add_argument("text", nargs="*", help="your own sentences")
    add_flags(parser, SpeechConfig)


def run(arguments: argparse.Namespace) -> int:
    import torch

    from utils.evaluation.sentences import built_in_sentences
    from utils.speech.quality import agreement, sound_distance
    from utils.speech.synthesizer import Synthesizer

    config = read_flags(arguments, SpeechConfig)
    texts = arguments.text or [each.text for each in built_in_sentences(config.language)[: arguments.count]]
    exact = Synthesizer.load(config.model, config.device, "fp32")
    cheap = Synthesizer.load(config.model, config.device, config.precision)
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
