"""The vocabulary of XTTS: load vocab.json, add tokens without moving rows, and resize the model to match.

The file is a BPE model of the `tokenizers` library. It is edited as JSON, so that existing rows do not change.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from utils.core.storage import read_json, write_atomically
from utils.xtts.facts import VocabularyFileError
from utils.xtts.files import VOCABULARY_FILE

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Bpe
    from torch import Tensor

    from utils.xtts.language_packs import LanguagePack

STOP = "[STOP]"
UNKNOWN = "[UNK]"
SPACE = "[SPACE]"
START = "[START]"

# The row that a new language token starts from. Like our Latin spelling of Amharic, Italian doubles letters for long
# consonants and has few vowels. Arabic is closer, but [ar] was only trained with Arabic letters. Not measured.
NEAREST_LANGUAGE = "[it]"
NOISE = 0.05  # in new rows, as a share of the deviation of existing rows

# No digits and no common punctuation; unlike \w it includes combining marks.
WORD = re.compile(r"[^\s\d!-/:-@\[-`{-~«»“”‘’…–—፠-፼।]+")
DISTINCT_WORDS = 500_000  # while counting, about 100 MB
LEARNED_WORDS = 200_000  # other words are too rare for a merge
WORDS_FED = 5_000_000  # the library counts words itself, so frequencies are scaled down to this total


@dataclass(frozen=True)
class Subwords:
    """Learned tokens, in order, and the merges that make them."""

    tokens: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Vocabulary:
    """A frozen vocabulary; adding tokens returns a new one."""

    data: Mapping[str, Any]
    source: str = VOCABULARY_FILE

    @classmethod
    def load(cls, path: Path) -> Self:
        try:
            data = read_json(path)
        except OSError as error:
            raise VocabularyFileError(str(path), "unreadable", str(error.strerror)) from error
        except ValueError as error:
            raise VocabularyFileError(str(path), "unreadable", f"JSON, {error}") from error
        return cls(data, str(path)).checked()

    def checked(self) -> Self:
        data = self.data if isinstance(self.data, dict) else {}
        model = data.get("model")
        added = data.get("added_tokens")
        if not isinstance(model, dict) or model.get("type") != "BPE" or not isinstance(added, list):
            raise VocabularyFileError(self.source, "not_bpe")
        if missing := [token for token in (STOP, UNKNOWN, SPACE, START) if token not in self.ids]:
            raise VocabularyFileError(self.source, "lacks", " ".join(missing))
        return self

    def save(self, folder: Path) -> Path:
        path = folder / VOCABULARY_FILE
        write_atomically(path, json.dumps(self.data, ensure_ascii=False, indent=2))
        return path

    @cached_property
    def bpe(self) -> "Bpe":
        from tokenizers import Tokenizer

        try:
            return Tokenizer.from_str(json.dumps(self.data, ensure_ascii=False))
        except Exception as error:  # the library raises nothing more precise
            raise VocabularyFileError(self.source, "unreadable", str(error)) from error

    @cached_property
    def ids(self) -> dict[str, int]:
        return self.bpe.get_vocab(with_added_tokens=True)

    @property
    def size(self) -> int:
        return max(self.ids.values()) + 1

    @cached_property
    def hash(self) -> str:
        """Hash of the content, independent of whitespace in the file."""
        return hashlib.sha256(json.dumps(self.data, sort_keys=True).encode()).hexdigest()

    def verify(self, expected: str) -> None:
        if self.hash != expected:
            raise VocabularyFileError(self.source, "other_model", f"{self.hash}, {expected}")

    @cached_property
    def special(self) -> frozenset[str]:
        return frozenset(token["content"] for token in self.data["added_tokens"])

    def missing_symbols(self, symbols: Iterable[str]) -> list[str]:
        """List the characters that would become [UNK]."""
        return sorted({symbol for symbol in symbols if symbol not in self.ids and not symbol.isspace()})

    def with_language(self, token: str) -> "Vocabulary":
        if token in self.ids:
            return self
        entry = {"id": self.size, "special": True, "content": token, "single_word": False}
        entry |= {"lstrip": False, "rstrip": False, "normalized": False}
        return self._extended([token], added_tokens=[entry])

    def with_symbols(self, symbols: Iterable[str]) -> "Vocabulary":
        return self._extended(self.missing_symbols(symbols))

    def with_subwords(self, learned: Subwords) -> "Vocabulary":
        merges = self.data["model"]["merges"]
        known = {tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in merges}
        as_text = bool(merges) and isinstance(merges[0], str)  # the format before tokenizers 0.20
        added = [" ".join(pair) if as_text else list(pair) for pair in learned.merges if pair not in known]
        return self._extended([token for token in learned.tokens if token not in self.ids], merges=added)

    def _extended(
        self, tokens: Iterable[str], *, merges: Sequence[object] = (), added_tokens: Sequence[object] = ()
    ) -> "Vocabulary":
        model = dict(self.data["model"])
        model["vocab"] = model["vocab"] | {token: row for row, token in enumerate(tokens, self.size)}
        model["merges"] = [*model["merges"], *merges]
        data = {**self.data, "model": model, "added_tokens": [*self.data["added_tokens"], *added_tokens]}
        return Vocabulary(data, self.source).checked()


def related_tokens(old: Vocabulary, new: Vocabulary, pack: "LanguagePack") -> dict[str, list[str]]:
    """Return for every new token the old tokens whose rows it starts from.

    A language token starts from one existing language, a subword from the old tokens of its Latin spelling, and any
    other token from all single letters.
    """
    letters = [token for token in old.ids if len(token) == 1 and token.isalpha()]
    related = {}
    for token in sorted(new.ids.keys() - old.ids.keys(), key=new.ids.__getitem__):
        if token in new.special:
            related[token] = [NEAREST_LANGUAGE] if NEAREST_LANGUAGE in old.ids else sorted(old.special - {UNKNOWN})
        else:
            spelled = old.bpe.encode(pack.resembling(token)).tokens
            related[token] = [piece for piece in spelled if piece != UNKNOWN] or letters
    return related


def resize_rows(weight: "Tensor", old: Vocabulary, new: Vocabulary, pack: "LanguagePack", *, seed: int = 0) -> "Tensor":
    """Return an embedding, a head or its bias with one row for each token of the new vocabulary.

    Existing rows are copied by token. A new row is the mean of its related rows plus noise, so that no two rows are
    equal; a new language token has no noise.
    """
    if weight.shape[0] != old.size:
        raise VocabularyFileError(old.source, "other_size", f"{old.size}, {weight.shape[0]}")
    weight = weight.detach()
    resized = weight.new_zeros((new.size, *weight.shape[1:]))
    shared = [token for token in new.ids if token in old.ids]
    resized[[new.ids[token] for token in shared]] = weight[[old.ids[token] for token in shared]]
    for token, row in _new_rows(weight.float(), old, new, pack, seed):
        resized[new.ids[token]] = row.to(weight.dtype)
    return resized


def _new_rows(
    weight: "Tensor", old: Vocabulary, new: Vocabulary, pack: "LanguagePack", seed: int
) -> Iterator[tuple[str, "Tensor"]]:
    import torch

    noise = torch.Generator().manual_seed(seed)
    deviation = NOISE * weight.std(dim=0)
    for token, relatives in related_tokens(old, new, pack).items():
        row = weight[[old.ids[name] for name in relatives]].mean(dim=0)
        if token not in new.special:
            row += deviation * torch.randn(row.shape, generator=noise).to(row.device)
        yield token, row


def learn_subwords(
    texts: Iterable[str], size: int, *, alphabet: Iterable[str], normalize: Callable[[str], str]
) -> Subwords:
    """Learn up to ``size`` subwords; only frequent words are normalized, which keeps large texts fast."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    normalized: Counter[str] = Counter()
    for word, count in _count_words(texts).most_common(LEARNED_WORDS):
        for spoken in WORD.findall(normalize(word)):
            normalized[spoken] += count
    letters = sorted(set(alphabet))
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=letters, show_progress=False, min_frequency=2)
    bpe.train_from_iterator(_repeat_words(normalized), trainer)
    model = json.loads(bpe.to_str())["model"]
    return Subwords(tuple(sorted(model["vocab"], key=model["vocab"].__getitem__)), tuple(map(tuple, model["merges"])))


def _count_words(texts: Iterable[str]) -> Counter[str]:
    """Count words in bounded memory: at twice the limit, the rarer half is dropped."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(WORD.findall(text))
        if len(counts) > 2 * DISTINCT_WORDS:
            counts = Counter(dict(counts.most_common(DISTINCT_WORDS)))
    return counts


def _repeat_words(words: Mapping[str, int]) -> Iterator[str]:
    """Yield every word as often as it was counted, scaled down for large texts."""
    scale = max(1.0, sum(words.values()) / WORDS_FED)
    for word, count in words.items():
        times = max(2, round(count / scale)) if count > 1 else 1
        for start in range(0, times, 10_000):
            yield f"{word} " * min(10_000, times - start)
