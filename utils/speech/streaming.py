"""Sound while the model is still speaking."""

from collections.abc import Generator
from contextlib import closing

import torch

from utils.media.audio import Samples
from utils.speech.decoder import Decoder, Request
from utils.speech.types import Voice
from utils.speech.vocoder import Vocoder


def chunks(
    decoder: Decoder, vocoder: Vocoder, request: Request, voice: Voice, *, first: int, then: int
) -> Generator[Samples, None, None]:
    """Give the sound of one piece in parts, which joined are what it sounds like at once.

    Args:
        decoder: Says the codes; closing this iterator frees what it holds.
        vocoder: Makes their sound.
        request: What to say.
        voice: In which voice.
        first: Codes before the first sound; fewer are sooner heard, and cost more work.
        then: Codes between two sounds.
    """
    sound = vocoder.stream(voice.embedding)
    due, waiting = first, []
    with closing(decoder.steps([request])) as steps:
        for step in steps:
            waiting += [said.latent for said in step]
            if len(waiting) >= due:
                yield sound.push(torch.stack(waiting))
                due, waiting = then, []
    if waiting:
        yield sound.push(torch.stack(waiting))
    yield sound.finish()
