"""Convert an exported model to the two folders of Auralis: `python -m tools.auralis_folders MODEL FOLDER`.

Auralis keeps the GPT, which vLLM runs, and everything else in two folders with safetensors. `auto_map` in both names
the code of Auralis on the hub. The layout follows Auralis' converter; it has not been tried with Auralis itself, which
needs vLLM and a GPU. Auralis knows no Amharic: give it what `amharic_text.to_latin` returns.
"""

import argparse
import dataclasses
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from utils.core.folders import replace_folder
from utils.core.storage import write_atomically
from utils.xtts.files import CONFIG_FILE, MODEL_FILE, VOCABULARY_FILE
from utils.xtts.model import read_config, read_state_dict

if TYPE_CHECKING:
    from TTS.tts.configs.xtts_config import XttsConfig

GPT, CORE = "gpt", "core_xttsv2"
GPT_FILE, CORE_FILE, TOKENIZER_FILE = "gpt2_model.safetensors", "xtts-v2.safetensors", "tokenizer.json"
RENAMED = {  # of the GPT, in the words of GPT-2
    "gpt.mel_embedding.weight": "gpt.wte.weight",
    "gpt.mel_pos_embedding.emb.weight": "gpt.wpe.emb.weight",
    "gpt.mel_head.weight": "mel_head.weight",
    "gpt.mel_head.bias": "mel_head.bias",
}
SHARED = "gpt.final_norm."  # in both


def convert(model: Path, folder: Path) -> None:
    """Write both folders of a model folder with model.pth, config.json and vocab.json."""
    from safetensors.torch import save_file

    gpt, core = divide(read_state_dict(model / MODEL_FILE))
    gpt_config, core_config = configs(read_config(model), gpt)
    for name, file, weights, config in ((GPT, GPT_FILE, gpt, gpt_config), (CORE, CORE_FILE, core, core_config)):
        with replace_folder(folder / name) as new:
            save_file({key: weight.clone().contiguous() for key, weight in weights.items()}, new / file)
            write_atomically(new / CONFIG_FILE, json.dumps(config, indent=2))
            shutil.copyfile(model / VOCABULARY_FILE, new / TOKENIZER_FILE)


def divide(weights: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the weights of the GPT and the others, under Auralis' names."""
    gpt, core = {}, {}
    for name, weight in weights.items():
        short = name.removeprefix("gpt.")
        if name in RENAMED:
            gpt[RENAMED[name]] = weight
        elif name.startswith("gpt.gpt."):
            gpt[short] = weight
        else:
            core[short] = weight
            if name.startswith(SHARED):
                gpt[short] = weight
    return gpt, core


def configs(config: "XttsConfig", gpt: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of the GPT and of the model that contains it."""
    sizes = config.model_args
    codes, dim = gpt["mel_head.weight"].shape
    own = {
        "model_type": "xtts_gpt",
        "architectures": ["XttsGPT"],
        "vocab_size": sizes.gpt_number_text_tokens,
        "number_text_tokens": sizes.gpt_number_text_tokens,
        "hidden_size": dim,
        "n_inner": 4 * dim,
        "num_hidden_layers": sizes.gpt_layers,
        "num_attention_heads": sizes.gpt_n_heads,
        "num_audio_tokens": codes,
        "start_audio_token": codes - 2,
        "stop_audio_token": codes - 1,
        "max_audio_tokens": sizes.gpt_max_audio_tokens,
        "max_text_tokens": sizes.gpt_max_text_tokens,
        "max_prompt_tokens": sizes.gpt_max_prompt_tokens,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "auto_map": {
            "AutoConfig": "AstraMindAI/xtts2-gpt--gpt_config.XTTSGPTConfig",
            "AutoModelForCausalLM": "AstraMindAI/xtts2-gpt--xtts2_gpt_modeling.XttsGPT",
            "AutoTokenizer": "AstraMindAI/xtts2-gpt--tokenizer.XTTSTokenizerFast",
        },
    }
    audio = dataclasses.asdict(config.audio)
    whole = {
        "model_type": "xtts",
        "architectures": ["XttsGPT"],
        "audio_config": {**audio, "hop_length": 256, "n_fft": 1024, "win_length": 1024, "mel_channels": 80},
        "input_sample_rate": sizes.input_sample_rate,
        "output_sample_rate": sizes.output_sample_rate,
        "output_hop_length": sizes.output_hop_length,
        "gpt_code_stride_len": sizes.gpt_code_stride_len,
        "decoder_input_dim": dim,
        "d_vector_dim": sizes.d_vector_dim,
        "cond_d_vector_in_each_upsampling_layer": sizes.cond_d_vector_in_each_upsampling_layer,
        "languages": list(config.languages),
        "gpt": {"model_type": "xtts_gpt"},
        "gpt_config": own,
        "auto_map": {
            "AutoConfig": "AstraMindAI/xtts2--xtts2_config.XTTSConfig",
            "AutoModelForCausalLM": "AstraMindAI/xtts2--xtts2_modeling.Xtts",
            "AutoTokenizer": "AstraMindAI/xtts2--tokenizer.XTTSTokenizerFast",
        },
    }
    return own, whole


def main() -> None:
    """Convert the model that the command names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="exported folder with model.pth, config.json and vocab.json")
    parser.add_argument("folder", type=Path, help=f"where the folders {GPT} and {CORE} are written")
    arguments = parser.parse_args()
    convert(arguments.model, arguments.folder)
    print(arguments.folder)


if __name__ == "__main__":
    main()
