"""Makes a voice of the GPT and the vocoder that the training pack trained, and of the rest of an earlier voice."""

import json
import shutil
import zipfile
from pathlib import Path

import torch
from torch import Tensor

from testing.widen import widen
from tools.tiny_voice.kit.__main__ import GPT, VOCODER
from utils.core.folders import replace_folder
from utils.core.storage import read_json, write_atomically
from utils.media.rates import RATE
from utils.xtts.files import CONFIG_FILE, MODEL_FILE
from utils.xtts.model import GPT_PREFIX, VOCODER_PREFIX, read_state_dict
from utils.xtts.tensors import half_dtype
from utils.xtts.tokenizer import Tokenizer

GENERATOR = "waveform_decoder."


def assemble(base: Path, trained: Path, folder: Path) -> None:
    """Write the voice.

    Args:
        base: The earlier voice.
        trained: Folder with what the pack wrote.
        folder: The new voice.
    """
    weights, config = read_state_dict(base / MODEL_FILE), read_json(base / CONFIG_FILE)
    for sizes in (config["model_args"], config["audio"]):
        sizes["output_sample_rate"] = RATE  # so that every code has four frames
    gpt, vocoder = (torch.load(trained / name, map_location="cpu", weights_only=True) for name in (GPT, VOCODER))
    wide = widen(
        {GENERATOR + name: weight for name, weight in vocoder.items()}, config["model_args"]["decoder_input_dim"]
    )
    weights |= {GPT_PREFIX + name: weight.to(half_dtype(weight)) for name, weight in gpt.items()}
    weights |= {VOCODER_PREFIX + name: weight for name, weight in wide.items()}
    with replace_folder(folder) as new:
        shutil.copytree(base, new, dirs_exist_ok=True)
        write_atomically(new / CONFIG_FILE, json.dumps(config, indent=2))
        Tokenizer.load(new).renewed().save(new)
        save_compressed(weights, new / MODEL_FILE)


def save_compressed(weights: dict[str, Tensor], path: Path) -> None:
    """Write a model whose entries are deflated: the silent channels of the vocoder then take no space."""
    plain = path.with_suffix(".plain")
    torch.save({"model": weights}, plain)
    with zipfile.ZipFile(plain) as stored, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as deflated:
        for name in stored.namelist():
            deflated.writestr(name, stored.read(name))
    plain.unlink()
