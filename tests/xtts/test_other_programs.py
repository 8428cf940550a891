"""Programs that know no Amharic speak an exported voice, and coqui's own trainer continues it.

xtts-api-server (0.9.0, PyPI) runs itself where it is installed. What ebook2audiobook, AllTalk and RealtimeTTS do with a
model is repeated here with coqui's classes, from their sources of November 2026; the programs are not run.
"""

import ctypes.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from testing import random_model
from tests.xtts.exporting import finished_run
from utils.core.paths import TINY_MODEL
from utils.speech.loading import open_model
from utils.studio.paths import Project
from utils.studio.publishing import PublishOptions, publish
from utils.xtts.model import load_gpt
from utils.xtts.tokenizer import prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not ctypes.util.find_library("avcodec"), reason="coqui reads references with FFmpeg"),
]
TEXT = "ሰላም ለዓለም። እንዴት ነህ?"
ALLTALK = ("config.json", "model.pth", "mel_stats.pth", "speakers_xtts.pth", "vocab.json", "dvae.pth")


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports") / "voice"
    return publish(open_model(TINY_MODEL), folder, PublishOptions(for_training=True), "# A card\n").folder


def loaded(folder: Path, **how: Any) -> Any:
    from TTS.tts.configs.xtts_config import XttsConfig
    from TTS.tts.models.xtts import Xtts

    config = XttsConfig()
    config.load_json(str(folder / "config.json"))
    model = Xtts.init_from_config(config)
    model.load_checkpoint(config, use_deepspeed=False, **how)
    return model


def ebook2audiobook(folder: Path) -> Any:
    """Take the files that its zip names; full stops become semicolons with a line break."""
    model = loaded(folder, checkpoint_path=str(folder / "model.pth"), vocab_path=str(folder / "vocab.json"), eval=True)
    latents, voice = model.get_conditioning_latents(
        audio_path=[str(folder / "reference.wav")], load_sr=24000, sound_norm_refs=True
    )
    part = TEXT.replace(".", " ;\n")
    return model.inference(
        text=part, language="hi", gpt_cond_latent=latents, speaker_embedding=voice, enable_text_splitting=True
    )["wav"]


def alltalk(folder: Path) -> Any:
    """Accept only folders with all six files of a base model."""
    assert all((folder / name).exists() for name in ALLTALK)
    model = loaded(folder, checkpoint_dir=str(folder))
    latents, voice = model.get_conditioning_latents(
        audio_path=[str(folder / "reference.wav")],
        gpt_cond_len=model.config.gpt_cond_len,
        max_ref_length=model.config.max_ref_len,
        sound_norm_refs=model.config.sound_norm_refs,
    )
    chunks = model.inference_stream(TEXT, "hi", latents, voice, stream_chunk_size=20)
    return torch.cat([chunk.cpu() for chunk in chunks])


def realtime_tts(folder: Path) -> Any:
    """Load by the config with coqui's own function, and stream."""
    from TTS.config import load_config
    from TTS.tts.models import setup_model

    config = load_config(str(folder / "config.json"))
    model: Any = setup_model(config)
    how: dict[str, Any] = {"checkpoint_path": None, "vocab_path": None, "eval": True, "use_deepspeed": False}
    model.load_checkpoint(config, checkpoint_dir=str(folder), **how)
    latents, voice = model.get_conditioning_latents(audio_path=str(folder / "reference.wav"))
    return torch.cat([chunk.cpu() for chunk in model.inference_stream(TEXT, "hi", latents, voice)])


@pytest.mark.parametrize("program", [ebook2audiobook, alltalk, realtime_tts])
def test_the_steps_of_a_program_speak_amharic(voice: Path, program: Callable[[Path], Any]) -> None:
    torch.manual_seed(0)
    sound = np.asarray(program(voice))
    assert len(sound) > 12_000
    assert np.abs(sound).max() > 0.01


def test_xtts_api_server_speaks_amharic(voice: Path, tmp_path: Path) -> None:
    functions = pytest.importorskip("xtts_api_server.tts_funcs")
    folders = [str(tmp_path / name) for name in ("output", "speakers")]
    wrapper = functions.TTSWrapper(*folders, str(voice.parent), model_version=voice.name, device="cpu")
    wrapper.load_local_model()
    spoken = tmp_path / "spoken.wav"
    wrapper.local_generation(TEXT, "me", str(voice / "reference.wav"), "hi", str(spoken))
    assert spoken.stat().st_size > 24_000


def test_the_trainer_of_coqui_continues_an_exported_voice(tmp_path: Path) -> None:
    """Its DVAE has the published size, which the trainer fixes; that of the embedded voice is smaller."""
    from TTS.tts.layers.xtts.trainer.gpt_trainer import GPTArgs, GPTTrainer, GPTTrainerConfig
    from TTS.tts.models.xtts import XttsAudioConfig

    sizes = random_model.RandomModelSize(layers=2, dvae=512, codebook=512)
    base = random_model.build(tmp_path / "base", sizes=sizes)
    tokenizer = prepare_tokenizer(Vocabulary.load(base / "vocab.json"), "am")
    finished_run(tmp_path / "project", base, tokenizer, load_gpt(base, tokenizer).state_dict())
    opened = open_model(Project(tmp_path / "project").ready)
    folder = publish(opened, tmp_path / "voice", PublishOptions(for_training=True), "# A card\n").folder

    stored = json.loads((folder / "config.json").read_text("utf-8"))["model_args"]
    known = {name: value for name, value in stored.items() if name in GPTArgs.__dataclass_fields__}
    files = {"mel_norm_file": "mel_stats.pth", "dvae_checkpoint": "dvae.pth", "xtts_checkpoint": "model.pth"}
    files["tokenizer_file"] = "vocab.json"
    known |= {name: str(folder / file) for name, file in files.items()}
    audio = XttsAudioConfig(sample_rate=22050, output_sample_rate=24000)
    trainer = GPTTrainer(GPTTrainerConfig(model_args=GPTArgs(**known), audio=audio))

    weight = opened.gpt.state_dict()["gpt.h.0.attn.c_attn.weight"]
    assert torch.equal(trainer.xtts.gpt.gpt.h[0].attn.c_attn.weight.data, weight.half().float())
    batch: dict[str, Any] = {
        "wav": torch.randn(1, 1, 44_100) * 0.1,
        "conditioning": torch.randn(1, 1, 1, 66_150) * 0.1,
        "text_lengths": torch.tensor([8]),
        "wav_lengths": torch.tensor([44_100]),
        "padded_text": torch.tensor([trainer.xtts.tokenizer.encode("ሰላም", "hi")[:8]]),
        "cond_idxs": torch.tensor([[0, 1]]),
        "cond_lens": None,
    }
    batch["text_lengths"] = torch.tensor([batch["padded_text"].shape[1]])
    _, losses = trainer.train_step(trainer.format_batch_on_device(batch), None)
    losses["loss"].backward()
    assert trainer.xtts.gpt.text_embedding.weight.grad.abs().sum() > 0
