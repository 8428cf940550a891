"""The training kit computes what coqui-tts and the program compute, and trains in a folder of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

from tests.xtts.exporting import plain_model
from tools.tiny_voice.assemble import assemble
from tools.tiny_voice.corpus import Corpus
from tools.tiny_voice.kit.__main__ import GPT, VOCODER, VOICES
from tools.tiny_voice.kit.codec import Codec
from tools.tiny_voice.kit.gpt import Gpt, named_weights
from tools.tiny_voice.kit.vocoder import Generator
from tools.tiny_voice.pack import VOICES_OF_ALL, codec_weights, gpt_weights, write_pack
from tools.tiny_voice.progress import Progress
from tools.tiny_voice.widen import widen
from tools.untrained import VocoderSize, new_vocoder
from utils.core.paths import TINY_MODEL
from utils.xtts.codec import AudioEncoder
from utils.xtts.files import MODEL_FILE
from utils.xtts.model import load_gpt, load_vocoder, read_state_dict
from utils.xtts.narrow_vocoder import without_silent_channels
from utils.xtts.tokenizer import Tokenizer

CHANNELS = 48, 24, 16, 8, 8


def test_codes_are_those_of_the_program() -> None:
    encoder = AudioEncoder.load(TINY_MODEL)
    time = np.arange(20 * 1024) / 22_050
    sound = (0.2 * np.sin(2 * np.pi * (150 + 60 * time) * time) * (time % 0.2 > 0.05)).astype(np.float32)
    assert np.array_equal(Codec(codec_weights(encoder)).encode(sound), encoder.encode([sound])[0].codes[:20])


@torch.no_grad()
def test_latents_are_those_of_coqui() -> None:
    gpt: Any = load_gpt(TINY_MODEL, Tokenizer.load(TINY_MODEL)).eval()
    kit, random = Gpt(gpt_weights(TINY_MODEL)), np.random.default_rng(0)
    texts, codes = [random.integers(1, 200, size) for size in (9, 5)], [random.integers(0, 1000, 12) for _ in range(2)]
    prompts = torch.randn(2, 32, 256)
    hidden = kit(kit.batch([text.tolist() for text in texts], codes, prompts))
    for row, (text, code) in enumerate(zip(texts, codes, strict=True)):
        wanted = gpt(
            torch.from_numpy(text)[None],
            torch.tensor([len(text)]),
            torch.from_numpy(code)[None],
            torch.tensor([1024 * len(code)]),
            cond_latents=prompts[row : row + 1],
            return_latent=True,
        )[0]
        assert torch.allclose(hidden[row, len(text) + 2 :][: len(code)], wanted, atol=1e-3)
    assert named_weights(kit).keys() == gpt_weights(TINY_MODEL).keys()


@torch.no_grad()
def test_a_vocoder_with_channels_of_its_own_is_the_same_function_in_coquis_shapes() -> None:
    torch.manual_seed(0)
    generator = Generator(24, CHANNELS)
    for name, weight in generator.named_parameters():
        if weight.ndim == 1 or name.endswith("original0"):
            weight.add_(torch.rand_like(weight) * 0.5)
    wide: Any = new_vocoder(VocoderSize(24))
    wide.output_sample_rate = wide.input_sample_rate
    named = {f"waveform_decoder.{name}": weight for name, weight in generator.state_dict().items()}
    wide.load_state_dict(wide.state_dict() | widen(named, 24))
    latents, voice = torch.randn(1, 8, 24), torch.randn(1, 512, 1) * 0.05
    wanted = generator(latents, voice)
    assert wanted.shape == (1, 8 * 1024)
    assert (wide(latents, g=voice)[:, 0] - wanted).abs().max() < 0.01 * wanted.abs().max()  # half precision
    wide.waveform_decoder = without_silent_channels(wide)
    assert [up.out_channels for up in wide.waveform_decoder.ups] == list(CHANNELS[1:])
    assert (wide(latents, g=voice)[:, 0] - wanted).abs().max() < 0.01 * wanted.abs().max()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(
    not (shutil.which("espeak-ng") and shutil.which("cc")), reason="espeak-ng or a compiler is not here"
)
def test_a_pack_trains_without_the_program_and_goes_on(tmp_path: Path) -> None:
    pack, out = tmp_path / "pack", tmp_path / "out"
    pack.mkdir()
    heard = {
        "prompts": torch.randn(len(VOICES_OF_ALL), 1, 32, 256),
        "embeddings": torch.randn(len(VOICES_OF_ALL), 512, 1),
    }
    torch.save(heard, pack / VOICES)  # hearing a hundred speakers takes minutes
    write_pack(
        TINY_MODEL, pack, Progress("pack", lambda _: None), Corpus(8, takes=1, phrases=4, word_lists=4, judged=8)
    )
    assert sum(path.stat().st_size for path in pack.rglob("*")) < 45_000_000
    sizes = "--batch 4 --crops 2 --codes 6 --channels 16 8 8 8 8 --cores 2 --device cpu --every 2".split()
    environment = os.environ | {"PYTHONPATH": "", "OMP_NUM_THREADS": "1"}
    for seconds in ("4", "8"):
        times = ["--gpt-seconds", seconds, "--vocoder-seconds", seconds]
        command = [sys.executable, "-m", "tools.tiny_voice.kit", str(pack), str(out), *sizes, *times]
        subprocess.run(command, cwd=pack, env=environment, check=True)
    curve = [json.loads(line) for line in (out / "vocoder.jsonl").read_text().splitlines()]
    assert [point["step"] for point in curve] == sorted(point["step"] for point in curve)
    assert curve[-1]["seconds"] >= 8
    assert all((out / name).stat().st_size < 16_000_000 for name in (GPT, VOCODER))
    voice = tmp_path / "voice"
    assemble(TINY_MODEL, out, voice)
    assert read_state_dict(voice / MODEL_FILE).keys() == read_state_dict(TINY_MODEL / MODEL_FILE).keys()
    decoder, _ = load_vocoder(voice)
    assert [up.out_channels for up in cast("Any", without_silent_channels(decoder)).ups] == [8, 8, 8, 8]
    coqui = plain_model(voice)
    speaker = next(iter(coqui.speaker_manager.speakers.values()))
    sound = coqui.inference("selam", "en", **speaker, max_new_tokens=8)["wav"]
    assert len(sound)
    assert len(sound) % 1024 == 0  # four frames a code
