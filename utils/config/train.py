"""The settings of a fine-tuning run."""

from typing import Literal, Self

from pydantic import Field, model_validator

from utils.config.base import Config, Language, Text

Version = Literal["v2.0.0", "v2.0.1", "v2.0.2", "v2.0.3", "main", "tiny", "tiny-random"]


class TrainConfig(Config):
    """How a model is fine-tuned."""

    custom_model: Text = Field(
        "", title="Custom model", description="A folder or .pth to start from; empty: the base version."
    )
    version: Version = Field(
        "v2.0.2",
        title="Base version",
        description="Which published XTTS to start from; tiny comes with this program, tiny-random is for tests.",
    )
    language: Language = Field(
        "am", title="Language", description="Spoken language of the clips; am, amh and Amharic are one."
    )
    use_amharic_g2p: bool = Field(
        True,
        title="Amharic G2P",
        description="Train on sounds written in Latin letters instead of on the Ethiopic letters.",
    )
    train_csv: Text = Field("", title="Training list", description="metadata_train.csv; empty: the one of the project.")
    eval_csv: Text = Field("", title="Evaluation list", description="metadata_eval.csv; empty: the one of the project.")
    output_path: Text = Field(
        "output",
        title="Project folder",
        description="Holds dataset, runs and finished models; on the page it is that of the open project.",
    )

    num_epochs: int = Field(10, ge=1, le=1000, title="Epochs", description="Passes over the training clips.")
    max_steps: int = Field(
        0, ge=0, le=10_000_000, title="Most updates", description="End after so many updates; 0: after the epochs."
    )
    batch_size: int = Field(8, ge=1, le=512, title="Batch size", description="Clips on the device at the same time.")
    grad_acumm: int = Field(
        2, ge=1, le=512, title="Gradient accumulation", description="Batches summed before one update."
    )
    batch_tokens: int = Field(
        0,
        ge=0,
        le=1_000_000,
        title="Token budget",
        description="Fill a batch by positions, padding included, instead of by clips; 0: by clips.",
    )
    max_audio_length: float = Field(
        11.6,
        ge=1.0,
        le=11.6,
        title="Longest clip (s)",
        description="Longer clips are set aside with a reason, never cut.",
    )
    max_text_length: int = Field(
        200,
        ge=10,
        le=400,
        title="Longest text (tokens)",
        description="Clips with a longer text are set aside with a reason, never cut.",
    )
    mask_reference: bool = Field(
        True,
        title="Mask the reference",
        description="Do not learn the part of a clip that the model hears as its reference.",
    )
    num_workers: int = Field(0, ge=0, le=64, title="Loading processes", description="Processes that read the features.")

    learning_rate: float = Field(
        5e-6, gt=0, le=1e-2, title="Learning rate", description="Highest rate of the schedule."
    )
    weight_decay: float = Field(1e-2, ge=0, le=1, title="Weight decay", description="Pull of the weights towards zero.")
    lr_scheduler: Literal["cosine", "linear", "constant"] = Field(
        "cosine", title="Schedule", description="How the rate falls after the warm-up, counted in updates."
    )
    warmup_steps: int = Field(
        100, ge=0, le=100_000, title="Warm-up", description="Updates over which the rate rises from 0."
    )
    warmup_share: float = Field(
        0.1,
        ge=0,
        le=1,
        title="Most warm-up",
        description="Share of the run that the warm-up may take, so that short runs reach their rate.",
    )
    embedding_warmup_steps: int = Field(
        0,
        ge=0,
        le=100_000,
        title="Text rows first",
        description="Updates at the start that train the rows of the text alone, for a new language.",
    )
    gradient_clip: float = Field(
        1.0, gt=0, le=1000, title="Gradient clip", description="Longest gradient that is applied."
    )
    dropout: float = Field(
        0.1, ge=0, lt=1, title="Dropout", description="Share of the activations left out at random while training."
    )
    enable_byte_dropout: bool = Field(
        True, title="Fast dropout (CPU)", description="On a CPU, decide about eight numbers with one random draw."
    )
    label_smoothing: float = Field(
        0.0, ge=0, lt=1, title="Label smoothing", description="Probability given to other codes."
    )
    text_loss_weight: float = Field(
        0.01, ge=0, le=10, title="Text loss weight", description="Weight of the text's loss beside that of the audio."
    )
    seed: int = Field(0, ge=0, lt=2**32, title="Seed", description="Same seed, same data and same device: same run.")

    enable_grad_checkpoint: bool = Field(
        False,
        title="Gradient Checkpointing",
        description="Compute activations twice instead of keeping them: less memory.",
    )
    checkpoint_every: int = Field(
        1, ge=1, le=30, title="Checkpoint every (layers)", description="1: every layer; 2: every second one, and so on."
    )
    enable_sdpa: bool = Field(
        True, title="Fast Attention (SDPA)", description="Fused attention in GPT, conditioning encoder and perceiver."
    )
    attention_kernel: Literal["auto", "flash", "efficient", "math", "flash_attention_2"] = Field(
        "auto",
        title="Attention kernel",
        description="Which fused kernel; flash_attention_2 needs its package; auto: torch chooses.",
    )
    enable_mixed_precision: bool = Field(
        True, title="Mixed Precision (FP16/BF16)", description="Half-precision arithmetic where this device has it."
    )
    enable_tf32: bool = Field(
        True, title="TF32", description="Shorter numbers inside the matrix products of GPUs that have them."
    )
    enable_fused_optimizer: bool = Field(
        True, title="Fused optimiser", description="Update all weights in one kernel instead of one after another."
    )
    enable_fused_gelu: bool = Field(
        True, title="Fused GELU", description="Compute the activation of each layer in one kernel: faster, less memory."
    )
    optimizer: Literal["adamw", "adamw_8bit", "adafactor"] = Field(
        "adamw", title="Optimiser", description="adamw_8bit needs a GPU and bitsandbytes; adafactor keeps least."
    )
    offload_optimizer: bool = Field(
        False, title="Optimiser on the CPU", description="Keep the optimiser's state in RAM and update there."
    )
    step_in_backward: bool = Field(
        False,
        title="Update in the backward pass",
        description="Apply each gradient at once and drop it; needs accumulation 1 and clips each weight by itself.",
    )
    use_compile: bool = Field(
        False,
        title="torch.compile",
        description="Compile each layer for a few fixed lengths; the first updates take minutes.",
    )
    max_mel_length: int = Field(
        0,
        ge=0,
        le=605,
        title="Longest audio (codes)",
        description="What the fixed lengths of torch.compile end at; 0: the longest clip of the data.",
    )
    enable_ema: bool = Field(False, title="EMA", description="Keep a running average of the weights and export it.")
    ema_decay: float = Field(
        0.999, gt=0, lt=1, title="EMA decay", description="Share of the average kept at each update."
    )
    ema_device: Literal["auto", "cpu"] = Field(
        "auto", title="EMA device", description="Where the average lives; cpu saves GPU memory."
    )

    freeze_first_n_gpt_layers: int = Field(
        0, ge=0, le=30, title="Frozen GPT layers", description="First layers of the GPT that are not trained."
    )
    freeze_conditioning: bool = Field(
        False, title="Freeze conditioning", description="Leave the part that listens to the reference untrained."
    )
    enable_lora: bool = Field(
        False, title="LoRA", description="Train small matrices beside the frozen layers, and the rows of the text."
    )
    use_dora: bool = Field(False, title="DoRA", description="LoRA that also learns the length of each weight.")
    lora_rank: int = Field(16, ge=1, le=512, title="LoRA rank", description="Width of the small matrices.")
    lora_alpha: float = Field(
        32.0, gt=0, le=1024, title="LoRA alpha", description="Strength of the small matrices, divided by their width."
    )
    lora_dropout: float = Field(0.0, ge=0, lt=1, title="LoRA dropout", description="Share of inputs they do not see.")
    lora_targets: Literal["attention", "all"] = Field(
        "all", title="LoRA targets", description="The attention's matrices, or those between the layers too."
    )

    max_memory_fraction: float = Field(
        1.0, gt=0, le=1, title="GPU memory", description="Largest share of the GPU's memory that the run may take."
    )
    num_processes: int = Field(
        1, ge=1, le=64, title="Processes", description="Training processes on this machine, one for each GPU."
    )
    sharding: Literal["none", "fsdp"] = Field(
        "none", title="Sharding", description="fsdp spreads weights and optimiser over the processes."
    )

    save_step: int = Field(1000, ge=1, title="Save every (steps)", description="Updates between two checkpoints.")
    save_n_checkpoints: int = Field(
        1, ge=1, le=100, title="Checkpoints kept", description="Newest ones kept besides the best."
    )
    eval_step: int = Field(
        0,
        ge=0,
        le=1_000_000,
        title="Evaluate every (steps)",
        description="Updates between two evaluations; 0: after each epoch.",
    )
    sample_texts: Text = Field(
        "",
        title="Sentences to listen to",
        description="Spoken at each checkpoint, with | between them; empty: three of the evaluation list; -: none.",
    )
    early_stopping_patience: int = Field(
        0,
        ge=0,
        le=1000,
        title="Early stopping",
        description="Evaluations without improvement before the end; 0: never.",
    )
    tracker: Literal["none", "tensorboard", "wandb", "trackio"] = Field(
        "none", title="Tracker", description="Where the curves are sent besides events.jsonl."
    )

    @model_validator(mode="after")
    def switches_that_agree(self) -> Self:
        """Refuse switches that exclude each other; nothing is switched off unsaid."""
        faults = [reason for clash, reason in self._clashes() if clash]
        if faults:
            raise ValueError("; ".join(faults))
        return self

    def _clashes(self) -> list[tuple[bool, str]]:
        apart = self.step_in_backward
        return [
            (apart and self.grad_acumm > 1, "step_in_backward needs grad_acumm 1, because it keeps no gradients"),
            (apart and self.num_processes > 1, "step_in_backward works with one process only"),
            (apart and self.batch_tokens > 0, "step_in_backward needs batches by clips, so batch_tokens 0"),
            (apart and self.offload_optimizer, "step_in_backward excludes offload_optimizer"),
            (apart and self.optimizer != "adamw", "step_in_backward works with optimizer adamw only"),
            (self.offload_optimizer and self.optimizer != "adamw", "offload_optimizer works with optimizer adamw only"),
            (self.use_dora and not self.enable_lora, "use_dora needs enable_lora"),
            (self.use_compile and self.enable_lora, "use_compile excludes enable_lora"),
            (self.use_compile and self.enable_grad_checkpoint, "use_compile excludes enable_grad_checkpoint"),
            (self.sharding == "fsdp" and self.enable_ema, "enable_ema works without sharding only"),
            (self.sharding == "fsdp" and self.enable_lora, "enable_lora works without sharding only"),
            (self.sharding == "fsdp" and self.offload_optimizer, "offload_optimizer works without sharding only"),
        ]  # fmt: skip
