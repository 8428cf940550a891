import json
from pathlib import Path

import pytest
import torch

from tests.xtts.small_vocabulary import vocabulary_data, write_vocabulary
from utils.core.errors import VocabularyError
from utils.xtts.language_packs import pack_for
from utils.xtts.vocabulary import Subwords, Vocabulary, related_tokens, resize_rows


@pytest.fixture
def base(tmp_path: Path) -> Vocabulary:
    return Vocabulary.load(write_vocabulary(tmp_path))


def keeps_rows(new: Vocabulary, old: Vocabulary) -> bool:
    return old.ids.items() <= new.ids.items()


def test_missing_symbols_can_be_added(base: Vocabulary) -> None:
    assert base.missing_symbols("aɨ ʔ’") == ["ɨ", "ʔ"]
    extended = base.with_symbols("aɨʔ").with_language("[am]")
    assert extended.bpe.encode("[am]ɨʔthe").tokens == ["[am]", "ɨ", "ʔ", "the"]
    assert keeps_rows(extended, base)


@pytest.mark.parametrize("style", ["text", "pairs"])
def test_learned_tokens_come_with_their_merges(style: str) -> None:
    data = vocabulary_data()
    if style == "pairs":
        data["model"]["merges"] = [merge.split(" ") for merge in data["model"]["merges"]]
    extended = Vocabulary(data).with_subwords(Subwords(("ሰ", "ላ", "ም", "ሰላ", "ሰላም"), (("ሰ", "ላ"), ("ሰላ", "ም"))))
    assert extended.bpe.encode("ሰላም[SPACE]the").tokens == ["ሰላም", "[SPACE]", "the"]
    assert len({type(merge) for merge in extended.data["model"]["merges"]}) == 1
    assert keeps_rows(extended, Vocabulary(data))


def test_the_hash_depends_on_the_content_not_on_the_layout(base: Vocabulary, tmp_path: Path) -> None:
    path = tmp_path / "indented.json"
    path.write_text(json.dumps(vocabulary_data(), indent=4), encoding="utf-8")
    assert Vocabulary.load(path).hash == base.hash
    assert base.with_language("[am]").hash != base.hash


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        '{"model": {"type": "WordLevel"}}',
        json.dumps(vocabulary_data()).replace("[SPACE]", "[SPAZE]"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "vocab.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(VocabularyError, match=r"vocab\.json"):
        Vocabulary.load(path)


def test_rows_are_carried_over_by_token_not_by_number(base: Vocabulary) -> None:
    data = vocabulary_data()
    turned = {token: base.size - 1 - row for token, row in data["model"]["vocab"].items()}
    data["model"]["vocab"] = turned
    data["added_tokens"] = sorted(
        ({**token, "id": turned[token["content"]]} for token in data["added_tokens"]), key=lambda token: token["id"]
    )
    other = Vocabulary(data).checked()
    weight = torch.randn(base.size, 4)
    resized = resize_rows(weight, base, other, pack_for("am"))
    assert all(torch.equal(resized[other.ids[token]], weight[row]) for token, row in base.ids.items())


def test_new_rows_begin_near_their_relatives(base: Vocabulary) -> None:
    extended = base.with_symbols("ɨʔː")
    weight = torch.randn(base.size, 512) * 0.02
    resized = resize_rows(weight, base, extended, pack_for("am"))
    new = resized[base.size :]
    assert related_tokens(base, extended, pack_for("am"))["ɨ"] == ["ï"]
    assert torch.allclose(resized[extended.ids["ɨ"]], weight[base.ids["ï"]], atol=0.02 * 0.05 * 6)
    assert torch.cdist(new, new)[~torch.eye(3, dtype=torch.bool)].min() > 0
    assert new.std() < 2 * weight.std()


def test_a_model_of_another_size_is_refused(base: Vocabulary) -> None:
    with pytest.raises(VocabularyError, match=f"{base.size}, {base.size - 3}"):
        resize_rows(torch.zeros(base.size - 3, 2), base, base.with_language("[am]"), pack_for("am"))
