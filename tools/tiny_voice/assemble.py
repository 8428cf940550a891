"""Makes a voice of the GPT and the vocoder that the training pack trained, and of the rest of an earlier voice."""

import json
import shutil
from pathlib import Path

import torch
from torch import Tensor

from tools.tiny_voice.kit.__main__ import GPT, VOCODER
from tools.tiny_voice.widen import widen
from utils.core.folders import replace_folder
from utils.core.storage import read_json, write_atomically
from utils.media.rates import RATE
from utils.xtts.files import CONFIG_FILE, MODEL_FILE
from utils.xtts.model import GPT_PREFIX, VOCODER_PREFIX, read_state_dict
from utils.xtts.tensors import half_dtype

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
    gpt, vocoder = (read_trained(trained / name) for name in (GPT, VOCODER))
    wide = widen(
        {GENERATOR + name: weight for name, weight in vocoder.items()}, config["model_args"]["decoder_input_dim"]
    )
    weights |= {GPT_PREFIX + name: weight.to(half_dtype(weight)) for name, weight in gpt.items()}
    weights |= {VOCODER_PREFIX + name: weight for name, weight in wide.items()}
    with replace_folder(folder) as new:
        shutil.copytree(base, new, dirs_exist_ok=True)
        write_atomically(new / CONFIG_FILE, json.dumps(config, indent=1))
        torch.save({"model": weights}, new / MODEL_FILE)


def read_trained(path: Path) -> dict[str, Tensor]:
    """Read the weights that the pack wrote."""
    found: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return found
