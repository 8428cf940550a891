import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from utils.xtts.facts import ModelFileError
from utils.xtts.model import fingerprint, gpt_state, load_gpt, match_gpt, read_config, read_state_dict
from utils.xtts.tokenizer import Tokenizer
from utils.xtts.vocabulary import Vocabulary

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_folder, tmp_path / "model")


def same(state: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return state.keys() == other.keys() and all(torch.equal(state[name].float(), other[name].float()) for name in state)


def test_the_gpt_is_filled_with_its_file(tiny_folder: Path) -> None:
    before = torch.random.get_rng_state()
    gpt = load_gpt(tiny_folder)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert {weight.dtype for weight in gpt.parameters()} == {torch.float32}
    assert same(gpt.state_dict(), gpt_state(tiny_folder))
    assert gpt.start_text_token == Vocabulary.load(tiny_folder / "vocab.json").ids["[START]"]


def wrapped(weights: dict[str, torch.Tensor], kind: str) -> Any:
    if kind == "bare":
        return weights
    if kind == "trainer":  # as coqui's Trainer saves the whole GPTTrainer
        more = {"dvae.codebook.embed": torch.ones(2), "torch_mel_spectrogram_dvae.mel_stft.x": torch.ones(2)}
        return {"config": {}, "model": {f"xtts.{name}": weights[name] for name in weights} | more, "step": 3}
    if kind == "generating":  # saved after a sentence was spoken
        twice = {f"gpt.gpt_inference.transformer.{name}": torch.ones(2) for name in ("h.0", "wte")}
        return {"model": weights | twice | {"gpt.gpt.wte.weight": torch.ones(2)}}
    from TTS.tts.models.xtts import XttsConfig

    return {"config": XttsConfig(), "model": weights}


@pytest.mark.parametrize("kind", ["bare", "trainer", "generating", "published"])
@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "old format"])
def test_every_way_of_saving_gives_the_same_weights(tmp_path: Path, kind: str, zipped: bool) -> None:
    from TTS.tts.models.xtts import _legacy_safe_globals

    weights = {"gpt.mel_head.bias": torch.arange(5.0), "hifigan_decoder.x": torch.ones(2), "mel_stats": torch.ones(80)}
    with _legacy_safe_globals():  # classes go by the names they had when the model was published
        torch.save(wrapped(weights, kind), tmp_path / "model.pth", _use_new_zipfile_serialization=zipped)
    assert same(read_state_dict(tmp_path / "model.pth"), weights)


def gpt_weights(folder: Path) -> dict[str, torch.Tensor]:
    weights = read_state_dict(folder / "model.pth").items()
    return {name: weight.clone() for name, weight in weights if "gpt." in name}


def test_weights_that_do_not_fit_are_refused(folder: Path) -> None:
    weights = gpt_weights(folder)
    torch.save({"model": {f"module.{name}": weight for name, weight in weights.items()}}, folder / "model.pth")
    with pytest.raises(ModelFileError, match=r"0\.0% of .* missing \(conditioning_encoder\.init\.weight, "):
        load_gpt(folder)
    rows = weights["gpt.text_head.bias"]
    torch.save({"model": weights | {"gpt.text_head.bias": torch.cat([rows, rows[:1]])}}, folder / "model.pth")
    with pytest.raises(ModelFileError, match=r"wrong shape \(text_head.bias \[\d+\] instead of \[\d+\]\)"):
        load_gpt(folder)


def test_few_missing_weights_are_initialised(folder: Path) -> None:
    weights = gpt_weights(folder)
    del weights["gpt.final_norm.weight"]
    torch.save({"model": weights | {"gpt.extra": torch.ones(1)}}, folder / "model.pth")
    match = match_gpt(folder)
    assert (match.missing, match.unexpected, match.complete) == (["final_norm.weight"], ["extra"], False)
    assert "1 missing (final_norm.weight); 1 unknown (extra)" in str(match)
    assert torch.equal(load_gpt(folder).final_norm.weight, torch.ones(64))


def test_new_tokens_change_no_row_of_others(tiny_folder: Path, amharic: Tokenizer) -> None:
    old = Vocabulary.load(tiny_folder / "vocab.json").ids
    new = amharic.vocabulary.ids
    before, after = gpt_state(tiny_folder), load_gpt(tiny_folder, amharic)
    assert after.number_text_tokens == len(new)
    for name in ("text_embedding.weight", "text_head.weight", "text_head.bias"):
        rows = after.get_parameter(name)
        assert all(torch.equal(rows[new[token]], before[name][old[token]].float()) for token in old)
    assert torch.equal(after.text_embedding.weight[new["[am]"]], before["text_embedding.weight"][old["[it]"]].float())


@pytest.mark.parametrize("content", [None, "{", '{"model_args": {"gpt_layers": 2}}'])
def test_a_wrong_config_is_refused(folder: Path, content: str | None) -> None:
    path = folder / "config.json"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(ModelFileError, match=r"config\.json"):
        read_config(folder)


def test_a_fingerprint_differs_between_models_but_not_copies(folder: Path, tiny_folder: Path) -> None:
    assert fingerprint(folder) == fingerprint(tiny_folder)
    weights = gpt_weights(folder)
    prints = set()
    for _ in range(2):
        torch.save({"model": weights}, folder / "model.pth")
        prints.add(fingerprint(folder))
        weights["gpt.gpt.h.0.attn.c_attn.bias"][7] += 1
    assert len(prints) == 2
