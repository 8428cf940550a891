"""Settings of a fine-tuning run."""

from typing import Literal, Self

from pydantic import Field, model_validator

from utils.config.base import Config, Language, Text

Version = Literal["v2.0.0", "v2.0.1", "v2.0.2", "v2.0.3", "main", "tiny", "tiny-random"]


class TrainConfig(Config):
    """How to fine-tune a model."""

    custom_model: Text = Field(
        "",
        title="Custom checkpoint (optional)",
        description="Folder or .pth file to start from; blank = the base version.",
    )
    version: Version = Field(
        "v2.0.2",
        title="Base version",
        description="Published XTTS version to start from; tiny is the small built-in voice, tiny-random is for tests.",
    )
    language: Language = Field("am", title="Language", description="Language spoken in the clips.")
    use_amharic_g2p: bool = Field(
        True,
        title="Amharic G2P",
        description="Convert Amharic to phonetic Latin letters before training.",
    )
    train_csv: Text = Field(
        "", title="Training list", description="Path to metadata_train.csv; blank = the project's list."
    )
    eval_csv: Text = Field(
        "", title="Evaluation list", description="Path to metadata_eval.csv; blank = the project's list."
    )
    output_path: Text = Field(
        "output",
        title="Project folder",
        description="Contains the dataset, runs and finished models. The page uses the open project.",
    )

    num_epochs: int = Field(10, ge=1, le=1000, title="Epochs", description="Passes over the training clips.")
    max_steps: int = Field(
        0,
        ge=0,
        le=10_000_000,
        title="Maximum steps",
        description="Stop after this many optimizer steps; 0 = train for all epochs.",
    )
    batch_size: int = Field(8, ge=1, le=512, title="Batch size", description="Clips on the device at a time.")
    grad_acumm: int = Field(2, ge=1, le=512, title="Gradient accumulation", description="Batches per optimizer step.")
    batch_tokens: int = Field(
        0,
        ge=0,
        le=1_000_000,
        title="Tokens per batch",
        description="Fill batches up to this many positions, padding included, instead of by clips; 0 = by clips.",
    )
    max_audio_length: float = Field(
        11.6,
        ge=1.0,
        le=11.6,
        title="Maximum clip length (s)",
        description="Longer clips are excluded, never cut.",
    )
    max_text_length: int = Field(
        200,
        ge=10,
        le=400,
        title="Maximum text length (tokens)",
        description="Clips with longer text are excluded, never cut.",
    )
    mask_reference: bool = Field(
        True,
        title="Mask the reference",
        description="Compute no loss on the part of a clip that is used as the voice reference.",
    )
    num_workers: int = Field(
        0,
        ge=0,
        le=64,
        title="Data loading workers",
        description="Processes that load training data; 0 = a thread of the training process.",
    )

    learning_rate: float = Field(
        5e-6, gt=0, le=1e-2, title="Learning rate", description="Peak learning rate of the schedule."
    )
    weight_decay: float = Field(
        1e-2, ge=0, le=1, title="Weight decay", description="Pulls weights towards zero to prevent overfitting."
    )
    lr_scheduler: Literal["cosine", "linear", "constant"] = Field(
        "cosine", title="Schedule", description="How the learning rate falls after warm-up."
    )
    warmup_steps: int = Field(
        100, ge=0, le=100_000, title="Warm-up steps", description="Steps over which the learning rate rises from 0."
    )
    warmup_share: float = Field(
        0.1,
        ge=0,
        le=1,
        title="Maximum warm-up share",
        description="Limits warm-up to this share of the run, so that short runs reach the full rate.",
    )
    embedding_warmup_steps: int = Field(
        0,
        ge=0,
        le=100_000,
        title="Text embedding warm-up",
        description="Train only the text embeddings for this many steps first; useful for a new language.",
    )
    gradient_clip: float = Field(
        1.0, gt=0, le=1000, title="Gradient clipping norm", description="Larger gradients are scaled down to this norm."
    )
    dropout: float = Field(
        0.1, ge=0, lt=1, title="Dropout", description="Share of activations dropped at random during training."
    )
    enable_byte_dropout: bool = Field(
        True, title="Fast dropout (CPU)", description="On a CPU, draw the dropout masks of eight values at once."
    )
    label_smoothing: float = Field(
        0.0, ge=0, lt=1, title="Label smoothing", description="Probability spread over all other audio codes."
    )
    text_loss_weight: float = Field(
        0.01, ge=0, le=10, title="Text loss weight", description="Weight of the text loss; the audio loss has weight 1."
    )
    seed: int = Field(0, ge=0, lt=2**32, title="Seed", description="The same seed, data and device give the same run.")

    enable_grad_checkpoint: bool = Field(
        False,
        title="Gradient Checkpointing",
        description="Uses less memory by computing activations a second time.",
    )
    checkpoint_every: int = Field(
        1,
        ge=1,
        le=30,
        title="Checkpoint every (layers)",
        description="1 = every layer, 2 = every second layer, and so on.",
    )
    enable_sdpa: bool = Field(
        True,
        title="Fast Attention (SDPA)",
        description="Use PyTorch's fused attention in the GPT, the conditioning encoder and the perceiver.",
    )
    attention_kernel: Literal["auto", "flash", "efficient", "math", "flash_attention_2"] = Field(
        "auto",
        title="Attention kernel",
        description="auto = PyTorch chooses; flash_attention_2 needs the flash-attn package.",
    )
    enable_mixed_precision: bool = Field(
        True, title="Mixed Precision (FP16/BF16)", description="Compute in half precision where the device supports it."
    )
    enable_tf32: bool = Field(True, title="TF32", description="Faster, less precise matrix math on recent NVIDIA GPUs.")
    enable_fused_optimizer: bool = Field(True, title="Fused optimizer", description="Update all weights in one kernel.")
    enable_fused_gelu: bool = Field(
        True, title="Fused GELU", description="Compute each GELU activation in one kernel; faster and uses less memory."
    )
    optimizer: Literal["adamw", "adamw_8bit", "adafactor"] = Field(
        "adamw", title="Optimizer", description="adamw_8bit needs a GPU and bitsandbytes; adafactor uses least memory."
    )
    offload_optimizer: bool = Field(
        False, title="Optimizer on the CPU", description="Keep the optimizer state in RAM and update the weights there."
    )
    step_in_backward: bool = Field(
        False,
        title="Optimizer step in backward",
        description="Apply and free each gradient at once. Needs gradient accumulation 1; clips each weight by itself.",
    )
    use_compile: bool = Field(
        False,
        title="torch.compile",
        description="Compile the GPT layers for a few fixed lengths; the first steps take minutes.",
    )
    max_mel_length: int = Field(
        0,
        ge=0,
        le=605,
        title="Maximum audio length (codes)",
        description="Largest length for torch.compile; 0 = the longest clip of the dataset.",
    )
    enable_ema: bool = Field(False, title="EMA", description="Keep a moving average of the weights and export it.")
    ema_decay: float = Field(
        0.999, gt=0, lt=1, title="EMA decay", description="Share of the average that each step keeps."
    )
    ema_device: Literal["auto", "cpu"] = Field(
        "auto", title="EMA device", description="Where the average is stored; cpu saves GPU memory."
    )

    freeze_first_n_gpt_layers: int = Field(
        0, ge=0, le=30, title="Frozen GPT layers", description="The first layers of the GPT that are not trained."
    )
    freeze_conditioning: bool = Field(
        False, title="Freeze conditioning", description="Don't train the speaker encoder."
    )
    enable_lora: bool = Field(
        False, title="LoRA", description="Train small adapter matrices and the text embeddings instead of all weights."
    )
    use_dora: bool = Field(False, title="DoRA", description="LoRA that also learns the magnitude of each weight.")
    lora_rank: int = Field(16, ge=1, le=512, title="LoRA rank", description="Width of the adapter matrices.")
    lora_alpha: float = Field(
        32.0, gt=0, le=1024, title="LoRA alpha", description="Strength of the adapter, divided by its rank."
    )
    lora_dropout: float = Field(
        0.0, ge=0, lt=1, title="LoRA dropout", description="Share of the adapter inputs dropped at random."
    )
    lora_targets: Literal["attention", "all"] = Field(
        "all", title="LoRA targets", description="Adapt only the attention layers, or the feed-forward layers too."
    )

    max_memory_fraction: float = Field(
        1.0, gt=0, le=1, title="GPU memory limit", description="Maximum share of the GPU memory that the run may use."
    )
    num_processes: int = Field(
        1, ge=1, le=64, title="Training processes", description="Processes on this machine, one per GPU."
    )
    sharding: Literal["none", "fsdp"] = Field(
        "none", title="Sharding", description="fsdp distributes weights and optimizer state over the processes."
    )

    save_step: int = Field(1000, ge=1, title="Save every (steps)", description="Steps between two checkpoints.")
    save_n_checkpoints: int = Field(
        1,
        ge=1,
        le=100,
        title="Checkpoints to keep",
        description="Recent checkpoints to keep; the best one is always kept.",
    )
    eval_step: int = Field(
        0,
        ge=0,
        le=1_000_000,
        title="Evaluate every (steps)",
        description="Steps between two evaluations; 0 = after each epoch.",
    )
    sample_texts: Text = Field(
        "",
        title="Sample sentences",
        description="Spoken at each checkpoint, separated by |; blank = three from the evaluation list, - = none.",
    )
    early_stopping_patience: int = Field(
        0,
        ge=0,
        le=1000,
        title="Early stopping",
        description="Stop after this many evaluations without improvement; 0 = never.",
    )
    tracker: Literal["none", "tensorboard", "wandb", "trackio"] = Field(
        "none", title="Tracker", description="Also send metrics to this service."
    )

    @model_validator(mode="after")
    def settings_that_agree(self) -> Self:
        """Refuse combinations that cannot work; nothing is switched off silently."""
        if reasons := [reason for is_conflict, reason in self._conflicts() if is_conflict]:
            raise ValueError("; ".join(reasons))
        return self

    def _conflicts(self) -> list[tuple[bool, str]]:
        in_backward = self.step_in_backward
        return [
            (in_backward and self.grad_acumm > 1, "step_in_backward needs grad_acumm 1"),
            (in_backward and self.num_processes > 1, "step_in_backward works with one process only"),
            (in_backward and self.batch_tokens > 0, "step_in_backward needs batch_tokens 0"),
            (in_backward and self.offload_optimizer, "step_in_backward does not work with offload_optimizer"),
            (in_backward and self.optimizer != "adamw", "step_in_backward works with optimizer adamw only"),
            (self.offload_optimizer and self.optimizer != "adamw", "offload_optimizer works with optimizer adamw only"),
            (self.use_dora and not self.enable_lora, "use_dora needs enable_lora"),
            (self.use_compile and self.enable_lora, "use_compile does not work with enable_lora"),
            (self.use_compile and self.enable_grad_checkpoint, "use_compile does not work with enable_grad_checkpoint"),
            (self.sharding == "fsdp" and self.enable_ema, "enable_ema does not work with sharding"),
            (self.sharding == "fsdp" and self.enable_lora, "enable_lora does not work with sharding"),
            (self.sharding == "fsdp" and self.offload_optimizer, "offload_optimizer does not work with sharding"),
        ]  # fmt: skip
