"""A finished model and a checkpoint of a tiny model, and how plain coqui-tts speaks with a folder."""

import copy
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from utils.core.events import EventLog
from utils.core.storage import write_atomically
from utils.studio.paths import Project
from utils.xtts import adapters, checkpoints
from utils.xtts.checkpoints import CheckpointInfo
from utils.xtts.export import write_ready
from utils.xtts.model import fingerprint, load_gpt
from utils.xtts.tensors import write_tensors
from utils.xtts.tokenizer import Tokenizer

State = dict[str, Tensor]
RUN, STEP = "20260101-120000-train", 7
LORA = {"lora_rank": 4, "lora_alpha": 8.0, "lora_dropout": 0.0, "lora_targets": "all", "use_dora": False}
SECRET = "/home/somebody/voice.csv"


def trained_state(base: Path, tokenizer: Tokenizer) -> State:
    """Weights that are not those of the base."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        state = load_gpt(base, tokenizer).state_dict()
        return {name: weight + 0.01 * torch.randn_like(weight) for name, weight in state.items()}


def checkpoint_info(base: Path, tokenizer: Tokenizer, **known: Any) -> CheckpointInfo:
    known.setdefault("settings", {"version": "tiny", "learning_rate": 3e-5, "num_epochs": 10, "train_csv": SECRET})
    known |= {"base": str(base), "base_fingerprint": fingerprint(base), "vocabulary_hash": tokenizer.vocabulary.hash}
    return CheckpointInfo(STEP, 1.5, 2.25, 2.5, is_average=True, **known)


def finished_run(project: Path, base: Path, tokenizer: Tokenizer, state: State) -> Path:
    """A run with one checkpoint, and the model that was made of it."""
    run = Project(project).runs / RUN
    checkpoints.write(run, state, checkpoint_info(base, tokenizer), tokenizer.save)
    checkpoints.mark_best(run, STEP)
    with EventLog(run / "events.jsonl") as log:
        log.emit("clips", split="train", used=11, aside=1)
        log.emit("clips", split="eval", used=4, aside=0)
    known = {"run": RUN, "step": STEP, "epoch": 1.5, "train_loss": 2.25, "eval_loss": 2.5}
    return write_ready(Project(project).ready, base, state, tokenizer, None, known)


def with_adapter(run: Path, base: Path, tokenizer: Tokenizer) -> tuple[Path, State]:
    """A checkpoint of a run with LoRA, and its weights before they were rounded."""
    gpt = load_gpt(base, tokenizer)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        adapters.add_lora(gpt, 4, 8.0)
        for weight in gpt.parameters():
            if weight.requires_grad:
                weight.data = torch.randn_like(weight) * 0.05
    merged = adapters.merged_state(gpt)

    def fill(folder: Path) -> None:
        tokenizer.save(folder)
        write_tensors(folder / checkpoints.ADAPTER, adapters.adapter_state(gpt))
        write_atomically(folder / checkpoints.ADAPTER_CONFIG, json.dumps(adapters.adapter_settings(gpt) | LORA))

    return checkpoints.write(run, merged, checkpoint_info(base, tokenizer, settings=LORA), fill), copy.deepcopy(merged)


def plain_model(folder: Path) -> Any:
    """The model as plain coqui-tts loads it, with every key."""
    from TTS.tts.configs.xtts_config import XttsConfig
    from TTS.tts.models.xtts import Xtts

    config = XttsConfig()
    config.load_json(str(folder / "config.json"))
    with torch.random.fork_rng(devices=[]):
        model = Xtts(config)
    model.load_checkpoint(config, checkpoint_dir=str(folder), strict=True)
    return model


def speak_codes(model: Any, codes: Tensor) -> Tensor:
    """What given codes sound like: coqui's second pass through the GPT, then its vocoder."""
    with torch.no_grad():
        prompt = torch.linspace(-1, 1, 32 * model.gpt.model_dim).view(1, 32, -1)
        voice = torch.linspace(-1, 1, 512).view(1, 512, 1)
        latents = model.gpt(
            torch.tensor([[5, 6, 7, 8]]),
            torch.tensor([4]),
            codes[None].clone(),
            torch.tensor([codes.shape[0] * model.gpt.code_stride_len]),
            cond_latents=prompt,
            return_latent=True,
        )
        samples: Tensor = model.hifigan_decoder(latents, g=voice).flatten()
    return samples
