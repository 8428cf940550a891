"""Join words with times to stretches of speech."""

from collections.abc import Iterable, Iterator

from utils.recognition.spans import Cue, Span

PAUSE = 0.35  # seconds between words that end a stretch
LONGEST = 10.0  # seconds of a stretch of words


def join_words(words: Iterable[Cue]) -> Iterator[Cue]:
    """Join words that follow each other without a pause."""
    held: list[Cue] = []
    for word in words:
        far = held and (word.span.start - held[-1].span.end > PAUSE or word.span.end - held[0].span.start > LONGEST)
        if far:
            yield _joined(held)
            held = []
        held.append(word)
    if held:
        yield _joined(held)


def _joined(words: list[Cue]) -> Cue:
    return Cue(Span(words[0].span.start, words[-1].span.end), " ".join(word.text for word in words))
