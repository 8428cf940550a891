"""Compare the precision that a model speaks in with fp32: by the codes it would choose, and by its sound.

Both are told the same codes, those that fp32 says, so that one different code does not make all that follow different.
The exit code is 1 when fewer than 97 % agree.
"""

import argparse
import sys

from utils.config import SpeechConfig
from utils.config.flags import add_flags, read_flags


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the model, the precision and the sentences."""
    parser.add_argument("--count", type=int, default=8, help="sentences to compare (default: 8)")
    parser.add_argument("text", nargs="*", help="sentences of your own")
    add_flags(parser, SpeechConfig)


def run(arguments: argparse.Namespace) -> int:
    """Load the model twice and compare."""
    from utils.evaluation.sentences import built_in_sentences
    from utils.speech.quality import Mouth, Saying, compare
    from utils.speech.synthesizer import Synthesizer, numbered

    config = read_flags(arguments, SpeechConfig)
    texts = arguments.text or [one.text for one in built_in_sentences(config.language)][: arguments.count]
    exact = Synthesizer.load(config.model, config.device, "fp32")
    cheap = Synthesizer.load(config.model, config.device, config.precision)
    voice = exact.voice(config.reference)
    lines = [line for text in texts for line in numbered(exact.plan(text, config).pieces, config.seed)]
    requests = [exact.request(line, voice, config) for line in lines]
    said = exact.decoder.generate(requests)
    sayings = [Saying(request, one.codes) for request, one in zip(requests, said, strict=True)]
    mouths = Mouth(exact.decoder, exact.vocoder), Mouth(cheap.decoder, cheap.vocoder)
    found = compare(*mouths, sayings, voice.embedding)
    print(f"{exact.model.name}, {found.seconds:.1f} s of speech: {found}. Vocoder in {cheap.chosen.vocoder}.")
    if not found.agreement.enough:
        sys.stderr.write("Fewer than 97 % agree: speak this model with --precision fp32.\n")
        return 1
    return 0
