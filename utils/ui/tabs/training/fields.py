"""Where on the tab each setting of a training stands: every field once, in the order in which a person works."""

from utils.config import TrainConfig

PROJECT = ("output_path",)  # its widget is the project picker above all tabs: the form must not name another one
MODEL = ("version", "custom_model", "language", "use_amharic_g2p")
LISTS = ("train_csv", "eval_csv")
BASIC = ("num_epochs", "batch_size", "grad_acumm", "max_audio_length", "learning_rate")
FIRST_SWITCHES = ("enable_grad_checkpoint", "enable_sdpa", "enable_mixed_precision")
SWITCHES = (
    *FIRST_SWITCHES,
    "enable_ema",
    "warmup_steps",
    "use_compile",
    "enable_tf32",
    "optimizer",
    "enable_lora",
    "freeze_first_n_gpt_layers",
    "freeze_conditioning",
    "enable_fused_optimizer",
    "enable_fused_gelu",
    "enable_byte_dropout",
    "offload_optimizer",
    "step_in_backward",
)
CHECKPOINTS = ("save_step", "save_n_checkpoints", "eval_step", "sample_texts", "tracker")
ADVANCED = {
    "training.advanced_optimizations": (
        "checkpoint_every",
        "attention_kernel",
        "max_mel_length",
        "ema_decay",
        "ema_device",
        "lora_rank",
        "lora_alpha",
        "lora_dropout",
        "lora_targets",
        "use_dora",
    ),
    "training.advanced_learning": (
        "max_steps",
        "lr_scheduler",
        "warmup_share",
        "embedding_warmup_steps",
        "weight_decay",
        "gradient_clip",
        "dropout",
        "label_smoothing",
        "text_loss_weight",
        "mask_reference",
        "early_stopping_patience",
        "seed",
    ),
    "training.advanced_batches": ("max_text_length", "batch_tokens", "num_workers"),
    "training.advanced_gpus": ("max_memory_fraction", "num_processes", "sharding"),
}
KEPT = {"custom_model", "train_csv", "eval_csv", *PROJECT}  # paths of this computer, which no preset knows
SHOWN = (
    *MODEL,
    *LISTS,
    *BASIC,
    *SWITCHES,
    *(name for names in ADVANCED.values() for name in names),
    *CHECKPOINTS,
)


def filled(config: TrainConfig, *, keep_paths: bool) -> dict[str, object]:
    """Return what every widget shall hold, by the name of its field.

    Args:
        config: The settings that are shown.
        keep_paths: Leave out the paths of this computer.
    """
    return {name: getattr(config, name) for name in SHOWN if not (keep_paths and name in KEPT)}
