"""The vocabulary of XTTS: reading vocab.json, adding to it without moving a row, and growing the model to match.

The file is a `tokenizers` BPE model. It is edited as JSON, so that old rows keep their place and their way of writing,
and every result is opened again by the `tokenizers` library before it is used.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from utils.core.errors import VocabularyError
from utils.core.storage import read_json, write_atomically
from utils.xtts.files import VOCABULARY_FILE

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Bpe
    from torch import Tensor

    from utils.xtts.language_packs import LanguagePack
    from utils.xtts.subwords import Subwords

ORIGIN = "It should be the vocab.json that came with the XTTS v2 model."
STOP, UNKNOWN, SPACE, START = "[STOP]", "[UNK]", "[SPACE]", "[START]"

# The row that a new language token starts from. Italian writes long consonants as doubled letters and has few, even
# vowels, as our Latin spelling of Amharic does; [ar] is the nearer relative, but only ever stood before Arabic letters.
# A reasoned choice, not a measured one.
NEAREST_LANGUAGE = "[it]"
SPREAD = 0.05  # of the noise in new rows


@dataclass(frozen=True)
class Vocabulary:
    """A frozen vocabulary; adding to it returns another one."""

    data: Mapping[str, Any]
    source: str = VOCABULARY_FILE

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a vocab.json and check that it has the structure of XTTS's."""
        try:
            data = read_json(path)
        except OSError as error:
            raise VocabularyError(
                f"{path} cannot be read: {error.strerror}.", hint="Copy XTTS's vocab.json there."
            ) from error
        except ValueError as error:
            raise VocabularyError(
                f"{path} is not valid JSON: {error}.", hint="Copy XTTS's vocab.json again."
            ) from error
        return cls(data, str(path)).checked()

    def checked(self) -> Self:
        """Return itself, or say why this is no XTTS vocabulary."""
        data = self.data if isinstance(self.data, dict) else {}
        model, added = data.get("model"), data.get("added_tokens")
        if not isinstance(model, dict) or model.get("type") != "BPE" or not isinstance(added, list):
            raise VocabularyError(f"{self.source} holds no BPE vocabulary.", hint=ORIGIN)
        if absent := [token for token in (STOP, UNKNOWN, SPACE, START) if token not in self.ids]:
            raise VocabularyError(f"{self.source} has no {' '.join(absent)} token.", hint=ORIGIN)
        return self

    def save(self, folder: Path) -> Path:
        """Write vocab.json into a folder."""
        path = folder / VOCABULARY_FILE
        write_atomically(path, json.dumps(self.data, ensure_ascii=False, indent=2))
        return path

    @cached_property
    def bpe(self) -> "Bpe":
        """Return the library's tokenizer."""
        from tokenizers import Tokenizer

        try:
            return Tokenizer.from_str(json.dumps(self.data, ensure_ascii=False))
        except Exception as error:  # the library raises nothing more precise
            raise VocabularyError(f"{self.source}: the tokenizers library refuses it: {error}", hint=ORIGIN) from error

    @cached_property
    def ids(self) -> dict[str, int]:
        """Map every token to its row."""
        return self.bpe.get_vocab(with_added_tokens=True)

    @property
    def size(self) -> int:
        """Return the number of rows that a model needs."""
        return max(self.ids.values()) + 1

    @cached_property
    def hash(self) -> str:
        """Hash the content; spaces and line ends of the file do not count."""
        return hashlib.sha256(json.dumps(self.data, sort_keys=True).encode()).hexdigest()

    def verify(self, expected: str) -> None:
        """Refuse a vocabulary that is not the one a model was made with."""
        if self.hash != expected:
            raise VocabularyError(
                f"{self.source} is not this model's vocabulary: its hash is {self.hash}, the model wants {expected}.",
                hint=f"Put back the {VOCABULARY_FILE} that was saved together with the model.",
            )

    @cached_property
    def special(self) -> frozenset[str]:
        """Return the tokens that stand for no letters: [STOP], [en] and their like."""
        return frozenset(token["content"] for token in self.data["added_tokens"])

    def lacking(self, symbols: Iterable[str]) -> list[str]:
        """List the characters that would be read as [UNK]."""
        return sorted({symbol for symbol in symbols if symbol not in self.ids and not symbol.isspace()})

    def with_language(self, token: str) -> "Vocabulary":
        """Add a language token as one symbol behind the last row."""
        if token in self.ids:
            return self
        entry = {"id": self.size, "special": True, "content": token, "single_word": False}
        entry |= {"lstrip": False, "rstrip": False, "normalized": False}
        data = _copied(self._with_rows([token]).data)
        data["added_tokens"].append(entry)
        return Vocabulary(data, self.source).checked()

    def with_symbols(self, symbols: Iterable[str]) -> "Vocabulary":
        """Add the single characters that are lacking."""
        return self._with_rows(self.lacking(symbols))

    def with_subwords(self, learned: "Subwords") -> "Vocabulary":
        """Add learned tokens together with the merges that produce them."""
        data = _copied(self._with_rows(token for token in learned.tokens if token not in self.ids).data)
        merges = data["model"]["merges"]
        known = {_pair(merge) for merge in merges}
        as_text = bool(merges) and isinstance(merges[0], str)  # files older than tokenizers 0.20 write "a b"
        merges += [" ".join(pair) if as_text else list(pair) for pair in learned.merges if pair not in known]
        return Vocabulary(data, self.source).checked()

    def _with_rows(self, tokens: Iterable[str]) -> "Vocabulary":
        data = _copied(self.data)
        data["model"]["vocab"] |= {token: row for row, token in enumerate(tokens, self.size)}
        return Vocabulary(data, self.source).checked()


def _copied(data: Mapping[str, Any]) -> dict[str, Any]:
    """Copy the parts of the JSON tree that are added to."""
    model = dict(data["model"])
    model |= {"vocab": dict(model["vocab"]), "merges": list(model["merges"])}
    return {**data, "model": model, "added_tokens": list(data["added_tokens"])}


def _pair(merge: str | Sequence[str]) -> tuple[str, str]:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


def related_tokens(old: Vocabulary, new: Vocabulary, pack: "LanguagePack") -> dict[str, list[str]]:
    """Name, for every token that was added, the old tokens whose rows it starts from.

    A language token starts from one existing language, a piece of a word from the tokens its Latin spelling has in the
    old vocabulary, and what resembles nothing from all single letters.
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

    Rows are carried over by token, never by number, and bit for bit. A new row is the mean of its related rows plus
    noise of ``SPREAD`` times the deviation of the old rows, so that no two begin alike; a new language token begins
    exactly where its neighbour stands.
    """
    import torch

    _check_rows(weight, old)
    weight = weight.detach()
    resized = weight.new_zeros((new.size, *weight.shape[1:]))
    kept = [token for token in new.ids if token in old.ids]
    resized[[new.ids[token] for token in kept]] = weight[[old.ids[token] for token in kept]]
    generator = torch.Generator().manual_seed(seed)
    deviation = SPREAD * weight.float().std(dim=0)
    for token, relatives in related_tokens(old, new, pack).items():
        row = weight[[old.ids[name] for name in relatives]].float().mean(dim=0)
        if token not in new.special:
            row += deviation * torch.randn(row.shape, generator=generator).to(row.device)
        resized[new.ids[token]] = row.to(weight.dtype)
    return resized


def _check_rows(weight: "Tensor", vocabulary: Vocabulary) -> None:
    if weight.shape[0] != vocabulary.size:
        raise VocabularyError(
            f"The model has {weight.shape[0]} text rows, {vocabulary.source} holds {vocabulary.size} tokens.",
            hint="Load model.pth and vocab.json from the same folder.",
        )
