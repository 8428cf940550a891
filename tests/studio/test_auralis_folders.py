"""The two folders of Auralis hold every weight of the model once, and the final norm twice."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from tools import auralis_folders
from utils.xtts.model import read_config, read_state_dict


def test_every_weight_is_in_one_folder_and_the_final_norm_in_both(tiny_folder: Path, tmp_path: Path) -> None:
    auralis_folders.convert(tiny_folder, tmp_path)
    gpt, core = (
        load_file(tmp_path / name / file)
        for name, file in (
            (auralis_folders.GPT, auralis_folders.GPT_FILE),
            (auralis_folders.CORE, auralis_folders.CORE_FILE),
        )
    )
    weights = read_state_dict(tiny_folder / "model.pth")
    assert gpt.keys() & core.keys() == {"final_norm.weight", "final_norm.bias"}
    assert len(gpt) + len(core) == len(weights) + 2
    assert torch.equal(gpt["gpt.wte.weight"], weights["gpt.mel_embedding.weight"])
    assert torch.equal(gpt["gpt.h.1.mlp.c_fc.weight"], weights["gpt.gpt.h.1.mlp.c_fc.weight"])
    assert torch.equal(core["text_head.weight"], weights["gpt.text_head.weight"])
    assert any(name.startswith("hifigan_decoder.") for name in core)

    config = json.loads((tmp_path / auralis_folders.CORE / "config.json").read_text(encoding="utf-8"))
    sizes = read_config(tiny_folder).model_args
    assert config["gpt_config"]["num_hidden_layers"] == sizes.gpt_layers
    assert config["gpt_config"]["stop_audio_token"] == sizes.gpt_stop_audio_token
    assert config["gpt_config"]["vocab_size"] == len(weights["gpt.text_embedding.weight"])
    tokenizer = Tokenizer.from_file(str(tmp_path / auralis_folders.GPT / auralis_folders.TOKENIZER_FILE))
    assert tokenizer.get_vocab_size() <= config["gpt_config"]["vocab_size"]
