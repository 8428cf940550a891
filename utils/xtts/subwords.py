"""Learning pieces of words from a text of any size, with the merges that let the BPE produce them."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

# Neither digits nor common punctuation; combining marks belong to their word, which \w does not allow.
WORD = re.compile(r"[^\s\d!-/:-@\[-`{-~«»“”‘’…–—፠-፼।]+")
DISTINCT_WORDS = 500_000  # kept while counting: about 100 MB, whatever the size of the text
LEARNED_WORDS = 200_000  # the rest of a language's words are too rare to earn a merge
WORDS_FED = 5_000_000  # the library counts words that it is shown, so frequencies are scaled down to this many


@dataclass(frozen=True)
class Subwords:
    """Tokens in the order of learning, and the pairs that make them."""

    tokens: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]


def learn(
    texts: Iterable[str], size: int, *, alphabet: Iterable[str] = (), normalise: Callable[[str], str] = str
) -> Subwords:
    """Learn up to ``size`` tokens: every letter of the alphabet and of the text, and the most useful merges.

    Words are counted as written and only the frequent ones are normalised, so the time is that of reading the text.
    """
    normalised: Counter[str] = Counter()
    for word, count in count_words(texts).most_common(LEARNED_WORDS):
        for spoken in WORD.findall(normalise(word)):
            normalised[spoken] += count
    return _train(normalised, size, sorted(set(alphabet)))


def count_words(texts: Iterable[str], limit: int = DISTINCT_WORDS) -> Counter[str]:
    """Count words in bounded memory: when twice the limit is reached, the rarer half is forgotten."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(WORD.findall(text))
        if len(counts) > 2 * limit:
            counts = Counter(dict(counts.most_common(limit)))
    return counts


def _train(words: Mapping[str, int], size: int, alphabet: list[str]) -> Subwords:
    """Run the library's BPE trainer over counted words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False, min_frequency=2)
    bpe.train_from_iterator(_scaled(words), trainer)
    model = json.loads(bpe.to_str())["model"]
    return Subwords(tuple(sorted(model["vocab"], key=model["vocab"].__getitem__)), tuple(map(tuple, model["merges"])))


def _scaled(words: Mapping[str, int]) -> Iterator[str]:
    """Show every word as often as it was counted, or in proportion when that would take too long."""
    scale = max(1.0, sum(words.values()) / WORDS_FED)
    for word, count in words.items():
        times = max(2, round(count / scale)) if count > 1 else 1
        for start in range(0, times, 10_000):
            yield f"{word} " * min(10_000, times - start)
