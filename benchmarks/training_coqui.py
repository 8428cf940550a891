"""Plain coqui-tts: its ``GPTTrainer`` with its own dataset and loader, stepped as its trainer does it.

The arguments are those of coqui's XTTS v2 recipe but for size, batch and rate. As there, all is computed in fp32, the
gradient is not clipped (its trainer's default), and the vocoder and the DVAE live beside the GPT.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import soundfile
import torch
from torch import Tensor

from benchmarks.training_material import DATASET, LANGUAGE, MODEL, TRAIN_LIST, Round, heads

RATE = 22_050
SECOND_NAME = "gpt_inference."  # under which coqui lists the weights of the GPT again
ENDLESS = 1_000_000  # clips of an epoch as its loader sees it, so that none ends in a round; it draws with replacement
WORKERS = 8  # in coqui's recipe, which is for GPUs; on a CPU they would take its cores away


class Coqui:
    """Plain coqui over the clips."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        from TTS.tts.datasets import load_tts_samples
        from TTS.tts.layers.xtts.trainer.gpt_trainer import GPTTrainer

        self.folder, self.device = folder, torch.device(options.device)
        self.notes = [f"sound is read with {_readable_audio()}"]
        self.config = _config(options, folder)
        torch.manual_seed(0)
        self.trainer: Any = GPTTrainer(self.config).to(self.device)
        self.gpt: Any = self.trainer.xtts.gpt
        self.samples, _evaluated = load_tts_samples(self.config, eval_split=False)
        self.optimizer = self.trainer.get_optimizer()
        many = self.samples * (ENDLESS // len(self.samples))
        self.batches = iter(self.trainer.get_data_loader(self.config, is_eval=False, samples=many))
        self.trainer.eval()
        self.gpt.train()

    def round(self, updates: int) -> Round:
        """Do what trainer.Trainer does in a step, some times, and tell what that took."""
        began, worked = time.perf_counter(), time.process_time()
        waited, clips, samples = 0.0, 0, 0
        for _ in range(updates):
            asked = time.perf_counter()
            batch = next(self.batches)
            waited += time.perf_counter() - asked
            clips += len(batch["wav_lengths"])
            samples += int(batch["wav_lengths"].sum())
            self._loss(batch).backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return Round(time.perf_counter() - began, time.process_time() - worked, waited, clips, samples / RATE)

    def _loss(self, batch: dict[str, Any]) -> Tensor:
        batch = self.trainer.format_batch(batch)
        for name, value in batch.items():
            batch[name] = value.to(self.device, non_blocking=True) if isinstance(value, Tensor) else value
        _, losses = self.trainer.train_step(self.trainer.format_batch_on_device(batch), None)
        loss: Tensor = losses["loss"]
        return loss

    @torch.no_grad()
    def loss(self, name: str = "") -> float:
        """Return the mean loss over all clips, without dropout, of saved weights, as coqui's evaluation computes it."""
        if name:
            found = self.gpt.load_state_dict(torch.load(self.folder / f"{name}.pth", mmap=True), strict=False)
            if odd := [key for key in (*found.missing_keys, *found.unexpected_keys) if not key.startswith(SECOND_NAME)]:
                raise RuntimeError(f"The weights of {name} do not fit: {odd[:3]}")
        self.gpt.eval()
        total, clips = 0.0, 0
        for batch in self.trainer.get_data_loader(self.config, is_eval=True, samples=list(self.samples)):
            count = len(batch["wav_lengths"])
            batch["cond_idxs"] = None  # as GPTTrainer.eval_step does
            total += count * float(self._loss(batch))
            clips += count
        return total / clips

    def save(self, name: str) -> None:
        """Save the weights of the GPT."""
        torch.save(self.gpt.state_dict(), self.folder / f"{name}.pth")


def _readable_audio() -> str:
    """Let coqui read WAV files where torchaudio cannot, because torchcodec finds no FFmpeg; it costs coqui no time."""
    import torchaudio

    try:
        from torchcodec.decoders import AudioDecoder  # type: ignore[import-untyped]  # noqa: F401
    except (ImportError, RuntimeError, OSError):
        torchaudio.load = _read_wave
        return "soundfile, because torchcodec finds no FFmpeg here"
    return "torchaudio"


def _read_wave(path: str) -> tuple[Tensor, int]:
    samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    return torch.from_numpy(samples.T.copy()), rate


def _config(options: argparse.Namespace, folder: Path) -> Any:  # noqa: ANN401  # coqui's class, which is imported late
    """Return the configuration of coqui's recipe for XTTS v2 with the sizes of the benchmark."""
    from TTS.config.shared_configs import BaseDatasetConfig
    from TTS.tts.configs.xtts_config import XttsAudioConfig
    from TTS.tts.layers.xtts.trainer.gpt_trainer import GPTArgs, GPTTrainerConfig

    sizes = GPTArgs(
        gpt_layers=options.layers,
        gpt_n_model_channels=options.dim,
        gpt_n_heads=heads(options),
        decoder_input_dim=options.dim,
        max_conditioning_length=132_300,
        min_conditioning_length=66_150,
        max_wav_length=255_995,
        max_text_length=200,
        mel_norm_file=str(folder / MODEL / "mel_stats.pth"),
        dvae_checkpoint=str(folder / MODEL / "dvae.pth"),
        xtts_checkpoint=str(folder / MODEL / "model.pth"),
        tokenizer_file=str(folder / MODEL / "vocab.json"),
        gpt_num_audio_tokens=1026,
        gpt_start_audio_token=1024,
        gpt_stop_audio_token=1025,
        gpt_use_masking_gt_prompt_approach=True,
        gpt_use_perceiver_resampler=True,
    )
    clips = BaseDatasetConfig(
        formatter="coqui",
        dataset_name="clips",
        path=str(folder / DATASET),
        meta_file_train=TRAIN_LIST,
        language=LANGUAGE,
    )
    return GPTTrainerConfig(
        model_args=sizes,
        datasets=[clips],
        audio=XttsAudioConfig(sample_rate=RATE, dvae_sample_rate=RATE, output_sample_rate=24_000),
        batch_size=options.batch,
        eval_batch_size=options.batch,
        num_loader_workers=min(WORKERS, os.cpu_count() or 1) if options.device == "cuda" else 0,
        optimizer="AdamW",
        optimizer_wd_only_on_weights=True,
        optimizer_params={"betas": [0.9, 0.96], "eps": 1e-8, "weight_decay": 1e-2},
        lr=1e-4,
        training_seed=0,
    )
