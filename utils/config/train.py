"""Settings of a fine-tuning run and of downloading its base model."""

import math
from pathlib import Path
from typing import Literal, Self

from pydantic import field_validator, model_validator

from utils.config.base import (
    AUTO_SECONDS,
    MODEL_SECONDS,
    MODEL_TOKENS,
    Config,
    Device,
    Language,
    Text,
    setting,
    split_values,
)
from utils.config.facts import InvalidSettingsError, SettingProblem, broken

Version = Literal["v2.0.0", "v2.0.1", "v2.0.2", "v2.0.3", "main", "tiny"]


def parse_weights(text: str) -> dict[Path, float]:
    """Read folders separated by |, each with an optional weight; a weight that is not positive is refused."""
    found = {}
    for part in split_values(text):
        folder, mark, weight = part.partition("=")
        try:
            found[Path(folder.strip())] = float(weight) if mark else 1.0
        except ValueError:
            found[Path(folder.strip())] = 0.0
    if not all(0 < weight < math.inf for weight in found.values()):
        raise broken("weight")
    return found


class TrainConfig(Config):
    """How to fine-tune a model."""

    custom_model: Text = setting(
        "", "Custom checkpoint (optional)", "Folder or .pth file to start from; blank = the base model."
    )
    version: Version = setting(
        "v2.0.2", "Base model", "Published XTTS version to start from; tiny is a small model for trials."
    )
    language: Language = setting("am", "Language", "Language spoken in the clips.")
    use_amharic_g2p: bool = setting(True, "Amharic G2P", "Convert Amharic to phonetic Latin letters before training.")
    text_mode: Literal["latin", "ipa", "fidel"] = setting(
        "latin",
        "Text mode",
        "What the model reads: phonemes in Latin letters (latin) or IPA, or the letters of the language (fidel). "
        "Without Amharic G2P, fidel is used.",
    )
    g2p_backend: Literal["rules", "epitran"] = setting(
        "rules", "G2P rules", "How Amharic is converted to phonemes: built-in rules, or the package epitran."
    )
    train_csv: Text = setting("", "Training list", "Path to metadata_train.csv; blank = the project's list.")
    eval_csv: Text = setting("", "Evaluation list", "Path to metadata_eval.csv; blank = the project's list.")
    replay_data: Text = setting(
        "",
        "Datasets of other languages",
        "Dataset folders whose clips are mixed in, so that the model keeps or learns their languages, separated by |. "
        "FOLDER=2 contributes twice as many clips as the others. They are evaluated too.",
    )
    replay_share: float = setting(
        0.05,
        "Share of other languages",
        "Share of the clips of each step that comes from these datasets; 0 = only evaluate on them.",
        ge=0,
        le=0.9,
    )
    output_path: Text = setting(
        "output", "Project folder", "Contains the dataset, runs and finished models. The page uses the open project."
    )

    num_epochs: int = setting(10, "Epochs", "Passes over the training clips.", ge=1, le=1000)
    max_steps: int = setting(
        0, "Maximum steps", "Stop after this many optimizer steps; 0 = train for all epochs.", ge=0, le=10_000_000
    )
    batch_size: int = setting(8, "Batch size", "Clips on the device at a time.", ge=1, le=512)
    grad_acumm: int = setting(2, "Gradient accumulation", "Batches per optimizer step.", ge=1, le=512)
    batch_tokens: int = setting(
        0,
        "Tokens per batch",
        "Fill batches up to this many positions, including padding; 0 = by number of clips.",
        ge=0,
        le=1_000_000,
    )
    max_audio_length: float = setting(
        AUTO_SECONDS,
        "Maximum clip length (s)",
        "Longer clips are excluded, never cut. The model allows 28 s.",
        ge=1,
        le=MODEL_SECONDS,
    )
    max_text_length: int = setting(
        MODEL_TOKENS,
        "Maximum text length (tokens)",
        "Clips with longer text are excluded, never cut. The model allows 402 tokens.",
        ge=10,
        le=MODEL_TOKENS,
    )
    reference: Literal["auto", "same_clip", "other_clip"] = setting(
        "auto",
        "Reference",
        "What the model hears as the voice: a part of the same clip, another clip of the speaker, or (auto) another "
        "clip only if a part of the same one would cover more than half of it.",
    )
    mask_reference: bool = setting(
        True,
        "Mask the reference",
        "Compute no loss on the part of a clip that is its own reference, unless that is more than half of the clip.",
    )
    find_batch_size: bool = setting(
        False,
        "Find the batch size",
        "Before the start, find the largest batch that fits; clips per step (batch size x accumulation) stay the same.",
    )
    num_workers: int = setting(
        -1,
        "Data loading workers",
        "Processes that load training data; -1 = chosen for this computer, 0 = a thread of the training process.",
        ge=-1,
        le=64,
    )

    learning_rate: float = setting(5e-6, "Learning rate", "Peak learning rate of the schedule.", gt=0, le=1e-2)
    weight_decay: float = setting(
        1e-2, "Weight decay", "Pulls weights towards zero to prevent overfitting.", ge=0, le=1
    )
    lr_scheduler: Literal["cosine", "linear", "constant"] = setting(
        "cosine", "Schedule", "How the learning rate falls after warm-up."
    )
    warmup_steps: int = setting(
        100, "Warm-up steps", "Steps over which the learning rate rises from 0.", ge=0, le=100_000
    )
    warmup_share: float = setting(
        0.1,
        "Maximum warm-up share",
        "Limits warm-up to this share of the run, so that short runs reach the full rate.",
        ge=0,
        le=1,
    )
    embedding_warmup_steps: int = setting(
        0,
        "Text embedding warm-up",
        "Train only the text embeddings for this many steps first; useful for a new language.",
        ge=0,
        le=100_000,
    )
    gradient_clip: float = setting(
        1.0, "Gradient clipping norm", "Larger gradients are scaled down to this norm.", gt=0, le=1000
    )
    dropout: float = setting(0.1, "Dropout", "Share of activations dropped at random during training.", ge=0, lt=1)
    enable_byte_dropout: bool = setting(
        True, "Fast dropout (CPU)", "On a CPU, draw the dropout mask of eight values at once."
    )
    label_smoothing: float = setting(
        0.0, "Label smoothing", "Probability spread over all other audio codes.", ge=0, lt=1
    )
    text_loss_weight: float = setting(
        0.01, "Text loss weight", "Weight of the text loss; the audio loss has weight 1.", ge=0, le=10
    )
    seed: int = setting(0, "Seed", "The same seed, data and device give the same run.", ge=0, lt=2**32)

    enable_grad_checkpoint: bool = setting(
        False, "Gradient Checkpointing", "Uses less memory by computing activations a second time."
    )
    checkpoint_every: int = setting(
        1, "Checkpoint every (layers)", "1 = every layer, 2 = every second layer, and so on.", ge=1, le=30
    )
    enable_sdpa: bool = setting(
        True,
        "Fast Attention (SDPA)",
        "Use PyTorch's fused attention in the GPT, the conditioning encoder and the perceiver.",
    )
    enable_mixed_precision: bool = setting(
        True, "Mixed Precision (FP16/BF16)", "Compute in half precision where the device is faster with it."
    )
    enable_tf32: bool = setting(True, "TF32", "Faster, less precise matrix math on recent NVIDIA GPUs.")
    deterministic: bool = setting(
        False, "Deterministic", "The same seed gives the same numbers on a GPU, too, digit by digit; slower."
    )
    enable_fused_optimizer: bool = setting(True, "Fused optimizer", "Update all weights in one kernel.")
    enable_fused_gelu: bool = setting(
        True, "Fused GELU", "Compute each GELU activation in one kernel; faster and uses less memory."
    )
    optimizer: Literal["adamw", "adamw_8bit", "adafactor"] = setting(
        "adamw", "Optimizer", "adamw_8bit needs a GPU and bitsandbytes; adafactor uses the least memory."
    )
    offload_optimizer: bool = setting(
        False, "Optimizer on the CPU", "Keep the optimizer state in RAM and update the weights there."
    )
    use_compile: bool = setting(
        False, "torch.compile", "Compile the GPT layers for a few fixed lengths; the first steps take minutes."
    )
    max_mel_length: int = setting(
        0,
        "Maximum audio length (codes)",
        "Largest length for torch.compile; 0 = the longest clip of the dataset.",
        ge=0,
        le=605,
    )
    enable_ema: bool = setting(False, "EMA", "Keep a moving average of the weights and export it.")
    ema_decay: float = setting(0.999, "EMA decay", "Share of the average that each step keeps.", gt=0, lt=1)
    ema_device: Literal["auto", "cpu"] = setting(
        "auto", "EMA device", "Where the average is stored; cpu saves GPU memory."
    )

    freeze_first_n_gpt_layers: int = setting(
        0, "Frozen GPT layers", "Number of GPT layers, from the first, that are not trained.", ge=0, le=30
    )
    freeze_conditioning: bool = setting(False, "Freeze conditioning", "Don't train the speaker encoder.")
    enable_lora: bool = setting(
        False, "LoRA", "Train small adapter matrices and the text embeddings instead of all weights."
    )
    use_dora: bool = setting(False, "DoRA", "LoRA that also learns the magnitude of each weight.")
    lora_rank: int = setting(16, "LoRA rank", "Width of the adapter matrices.", ge=1, le=512)
    lora_alpha: float = setting(32.0, "LoRA alpha", "Strength of the adapter, divided by its rank.", gt=0, le=1024)
    lora_dropout: float = setting(0.0, "LoRA dropout", "Share of the adapter inputs dropped at random.", ge=0, lt=1)
    lora_targets: Literal["attention", "all"] = setting(
        "all", "LoRA targets", "Adapt only the attention layers, or the feed-forward layers too."
    )

    device: Device = setting("auto", "Device", "Device to train on; auto = the GPU if there is one.")
    max_memory_fraction: float = setting(
        1.0, "GPU memory limit", "Maximum share of the GPU memory that the run may use.", gt=0, le=1
    )
    num_processes: int = setting(1, "Training processes", "Processes on this machine, one per GPU.", ge=1, le=64)

    save_step: int = setting(
        1000, "Save every (steps)", "Steps between two saves. Runs also save after each epoch and by time.", ge=1
    )
    save_minutes: float = setting(
        10.0,
        "Save every (minutes)",
        "Maximum work that a crash can lose, in minutes; 0 = save by steps and epochs only.",
        ge=0,
        le=1440,
    )
    save_n_checkpoints: int = setting(
        1, "Checkpoints to keep", "Recent checkpoints to keep; the best one is always kept.", ge=1, le=100
    )
    eval_step: int = setting(
        0, "Evaluate every (steps)", "Steps between two evaluations; 0 = after each epoch.", ge=0, le=1_000_000
    )
    sample_texts: Text = setting(
        "",
        "Sample sentences",
        "Spoken at each evaluation, separated by |; blank = three from the evaluation list, - = none.",
    )
    score_sentences: int = setting(
        8,
        "Scored sentences",
        "Held-out sentences that are spoken and scored at each evaluation; 0 = none.",
        ge=0,
        le=200,
    )
    score_model: Text = setting(
        "",
        "Recogniser for scores",
        "Whisper size or folder, or ctc:MODEL, that measures how intelligible the sentences are; blank = the built-in "
        "phone recogniser, for Amharic and where the texts of the dataset were checked.",
    )
    early_stopping_patience: int = setting(
        0, "Early stopping", "Stop after this many evaluations without improvement; 0 = never.", ge=0, le=1000
    )
    tracker: Literal["none", "tensorboard", "wandb", "trackio"] = setting(
        "none", "Tracker", "Also send metrics to this service."
    )

    @property
    def replay_weights(self) -> dict[Path, float]:
        """The datasets of other languages, and how many clips each gives in comparison."""
        return parse_weights(self.replay_data)

    @field_validator("replay_data")
    @classmethod
    def check_replay_data(cls, value: str) -> str:
        parse_weights(value)
        return value

    @model_validator(mode="after")
    def check_combinations(self) -> Self:
        """Refuse combinations that cannot work; nothing is switched off silently."""
        conflicts = [
            (self.find_batch_size and self.num_processes > 1, "find_batch_size", "num_processes 1"),
            (self.find_batch_size and self.batch_tokens > 0, "find_batch_size", "batch_tokens 0"),
            (bool(self.replay_data) and self.batch_tokens > 0, "replay_data", "batch_tokens 0"),
            (self.offload_optimizer and self.optimizer != "adamw", "offload_optimizer", "optimizer adamw"),
            (self.use_dora and not self.enable_lora, "use_dora", "enable_lora"),
            (self.use_compile and self.enable_lora, "use_compile", "enable_lora off"),
            (self.use_compile and self.enable_grad_checkpoint, "use_compile", "enable_grad_checkpoint off"),
        ]
        if found := [(name, need) for is_conflict, name, need in conflicts if is_conflict]:
            raise InvalidSettingsError(tuple(SettingProblem("needs", name, bound=need) for name, need in found))
        return self


class DownloadConfig(Config):
    """Which base model to download."""

    version: Version = setting("v2.0.2", "Base model", "XTTS version to download; tiny is a small model for trials.")
    models: Text = setting("", "Models folder", "Where to save the model; blank = the default folder.")
