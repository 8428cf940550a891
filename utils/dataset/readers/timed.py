"""Join words with times to stretches of speech."""

from collections.abc import Iterable, Iterator, Sequence

from utils.core.batching import grouped
from utils.recognition.spans import Cue, Span

PAUSE = 0.35  # seconds between words that end a stretch
LONGEST = 10.0  # seconds of a stretch of words


def join_words(words: Iterable[Cue]) -> Iterator[Cue]:
    """Join words that follow each other without a pause."""

    def follows(before: Sequence[Cue], word: Cue) -> bool:
        pause = word.span.start - before[-1].span.end
        return pause <= PAUSE and word.span.end - before[0].span.start <= LONGEST

    for group in grouped(words, follows):
        yield Cue(Span(group[0].span.start, group[-1].span.end), " ".join(word.text for word in group))
