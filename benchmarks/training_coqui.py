"""Plain coqui-tts: its ``GPTTrainer`` with its own dataset and loader, stepped as its trainer does it.

The arguments are those of coqui's XTTS v2 recipe but for size, batch and rate. As there, all is computed in fp32, the
gradient is not clipped (its trainer's default), and the vocoder and the DVAE live beside the GPT.
"""

import time
from collections.abc import Sequence
from typing import Any

import soundfile
import torch
from torch import Tensor

from benchmarks.training_data import LANGUAGE, TRAIN_LIST, Material
from benchmarks.training_plan import Plan, Round

SECOND_NAME = "gpt_inference."  # under which coqui lists the weights of the GPT again
ENDLESS = 1_000_000  # clips of an epoch as its loader sees it, so that none ends in a round; it draws with replacement


class CoquiSide:
    """Plain coqui over the clips of a plan."""

    def __init__(self, plan: Plan, material: Material) -> None:
        from TTS.tts.datasets import load_tts_samples
        from TTS.tts.layers.xtts.trainer.gpt_trainer import GPTTrainer

        self.plan, self.device = plan, torch.device(plan.device)
        self.reads_with = _readable_audio()
        self.config = _config(plan, material)
        torch.manual_seed(plan.seed)
        self.trainer: Any = GPTTrainer(self.config).to(self.device)
        self.gpt: Any = self.trainer.xtts.gpt
        self.samples, _ = load_tts_samples(self.config, eval_split=False)
        self.optimizer = self.trainer.get_optimizer()
        many = self.samples * (ENDLESS // len(self.samples))
        self.batches = iter(self.trainer.get_data_loader(self.config, is_eval=False, samples=many))
        self.trainer.eval()
        self.gpt.train()
        self.waited = 0.0

    def round(self, updates: int) -> Round:
        """Make some updates and tell what they took."""
        began, worked = time.perf_counter(), time.process_time()
        made = [self._update() for _ in range(updates)]
        loss = float(made[-1][0])  # waits for the GPU
        seconds, work = time.perf_counter() - began, time.process_time() - worked
        return Round(seconds, work, sum(clips for _, clips, _ in made), sum(sound for *_, sound in made), loss)

    def _update(self) -> tuple[Tensor, int, float]:
        """Do what trainer.Trainer does in a step: format, forward, backward, update."""
        clips, samples = 0, 0
        total = torch.zeros((), device=self.device)
        for _ in range(self.plan.accumulation):
            asked = time.perf_counter()
            batch = next(self.batches)
            self.waited += time.perf_counter() - asked
            clips, samples = clips + len(batch["wav_lengths"]), samples + int(batch["wav_lengths"].sum())
            loss = self._loss(batch) / self.plan.accumulation
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total, clips, samples / self.config.audio.sample_rate

    def _loss(self, batch: dict[str, Any]) -> Tensor:
        batch = self.trainer.format_batch(batch)
        moved = {name: self._moved(value) for name, value in batch.items()}
        _, losses = self.trainer.train_step(self.trainer.format_batch_on_device(moved), None)
        loss: Tensor = losses["loss"]
        return loss

    def _moved(self, value: object) -> object:
        return value.to(self.device, non_blocking=True) if isinstance(value, Tensor) else value

    @torch.no_grad()
    def loss(self) -> float:
        """Return the mean loss over all clips, without dropout, as its evaluation computes it."""
        loader = self.trainer.get_data_loader(self.config, is_eval=True, samples=list(self.samples))
        self.gpt.eval()
        total, clips = 0.0, 0
        for batch in loader:
            count = len(batch["wav_lengths"])
            batch["cond_idxs"] = None  # as GPTTrainer.eval_step does
            total, clips = total + count * float(self._loss(batch)), clips + count
        self.gpt.train()
        return total / clips

    def weights(self) -> dict[str, Tensor]:
        """Return the weights of the GPT."""
        found: dict[str, Tensor] = self.gpt.state_dict()
        return found

    def loading_seconds(self) -> float:
        """Return how long it has waited for its loader."""
        return self.waited

    def changes(self) -> list[str]:
        """Say that nothing was switched."""
        return []


def judge(plan: Plan, material: Material, names: Sequence[str]) -> list[float]:
    """Return the loss of the initial weights, and of the weights that were saved under names, by coqui's evaluation."""
    side = CoquiSide(plan, material)
    torch.set_num_threads(plan.threads)  # coqui's dataset sets it to 1 when it is imported
    losses = [side.loss()]
    for name in names:
        found = side.gpt.load_state_dict(torch.load(material.weights(name), mmap=True), strict=False)
        if odd := [key for key in (*found.missing_keys, *found.unexpected_keys) if not key.startswith(SECOND_NAME)]:
            raise RuntimeError(f"The weights of {name} do not fit: {odd[:3]}")
        losses.append(side.loss())
    return losses


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


def _config(plan: Plan, material: Material) -> Any:  # noqa: ANN401  # coqui's class, which is imported late
    """Return the configuration of coqui's recipe for XTTS v2 with the sizes of the plan."""
    from TTS.config.shared_configs import BaseDatasetConfig
    from TTS.tts.configs.xtts_config import XttsAudioConfig
    from TTS.tts.layers.xtts.trainer.gpt_trainer import GPTArgs, GPTTrainerConfig

    sizes = GPTArgs(
        gpt_layers=plan.layers,
        gpt_n_model_channels=plan.dim,
        gpt_n_heads=plan.heads,
        decoder_input_dim=plan.dim,
        max_conditioning_length=132_300,
        min_conditioning_length=66_150,
        max_wav_length=255_995,
        max_text_length=200,
        mel_norm_file=str(material.model / "mel_stats.pth"),
        dvae_checkpoint=str(material.model / "dvae.pth"),
        xtts_checkpoint=str(material.model / "model.pth"),
        tokenizer_file=str(material.model / "vocab.json"),
        gpt_num_audio_tokens=1026,
        gpt_start_audio_token=1024,
        gpt_stop_audio_token=1025,
        gpt_use_masking_gt_prompt_approach=True,
        gpt_use_perceiver_resampler=True,
    )
    clips = BaseDatasetConfig(
        formatter="coqui",
        dataset_name="clips",
        path=str(material.dataset),
        meta_file_train=TRAIN_LIST,
        language=LANGUAGE,
    )
    return GPTTrainerConfig(
        model_args=sizes,
        datasets=[clips],
        audio=XttsAudioConfig(sample_rate=22_050, dvae_sample_rate=22_050, output_sample_rate=24_000),
        batch_size=plan.batch,
        eval_batch_size=plan.batch,
        num_loader_workers=plan.workers,
        optimizer="AdamW",
        optimizer_wd_only_on_weights=True,
        optimizer_params={"betas": [0.9, 0.96], "eps": 1e-8, "weight_decay": 1e-2},
        lr=plan.rate,
        training_seed=plan.seed,
    )
