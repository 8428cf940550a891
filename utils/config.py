"""Every setting, declared once: its type, bounds, default, title and one honest sentence.

The form, the flags, the YAML files and the reference page are generated from these fields.
"""

import difflib
import reprlib
import unicodedata
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from utils.errors import ConfigError
from utils.languages import canonical


def printable(text: str) -> str:
    """Refuse letters that no name or path holds and that YAML cannot carry."""
    if any(unicodedata.category(letter) in {"Cc", "Cs"} for letter in text):
        raise ValueError("holds a control character")
    return text


Language = Annotated[str, AfterValidator(canonical)]
Text = Annotated[str, AfterValidator(printable)]


class Config(BaseModel):
    """A frozen set of settings that refuses what it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def no_switch_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        """Refuse ``num_epochs: yes``, which pydantic would take for 1."""
        field = cls.model_fields[info.field_name or ""]
        if isinstance(value, bool) and field.annotation in {int, float}:
            raise ValueError("should be a number")
        return value

    @classmethod
    def parse(cls, values: Mapping[str, object], *, source: str = "the settings") -> Self:
        """Check all values at once; every fault is reported, with the field, the value and the bound."""
        try:
            return cls(**values)
        except ValidationError as error:
            faults = [describe(fault, cls.model_fields) for fault in error.errors()]
            raise ConfigError(f"{source}: {'; '.join(faults)}.") from error

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a YAML file."""
        return cls.parse(read_yaml(path), source=str(path))

    def to_yaml(self) -> str:
        """Write every setting, defaults included, in the order of declaration."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def read_yaml(path: Path) -> dict[str, object]:
    """Read a YAML file that holds one mapping of settings."""
    try:
        values = yaml.load(path.read_text(encoding="utf-8-sig"), _Loader)  # noqa: S506  # a SafeLoader
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date or number that cannot be
        raise ConfigError(f"{path} is not valid YAML: {_where(error)}.") from error
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise ConfigError(f"{path} has to hold 'setting: value' lines.")
    return values


class _Loader(yaml.SafeLoader):
    """Reads plain YAML and refuses a setting that is given twice, of which the last would win unsaid."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} is given twice", key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


def _where(error: Exception) -> str:
    """Say in one line what is wrong with a YAML file, and in which line of it."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return " ".join(str(error).split())


def describe(fault: ErrorDetails, known: Iterable[str]) -> str:
    """Say what is wrong with one setting: its name, the bad value and the rule."""
    name = ".".join(map(str, fault["loc"])) or "together"
    if fault["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, known, n=1)
        return f"{name}: no such setting" + (f" (did you mean {near[0]}?)" if near else "")
    rule = fault["msg"].removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    return f"{name}: {rule}" if name == "together" else f"{name}: {_shortened(fault['input'])} {rule}"


def _shortened(value: object) -> str:
    """Quote a bad value, however large it is."""
    if isinstance(value, int) and value.bit_length() > 256:
        return "an enormous number"
    short = reprlib.Repr()
    short.maxstring, short.maxother, short.maxlevel = 120, 120, 2
    return short.repr(value)


class TrainConfig(Config):
    """How a model is fine-tuned."""

    custom_model: Text = Field(
        "", title="Custom model", description="A folder or .pth to start from; empty: the base version."
    )
    version: Literal["v2.0.0", "v2.0.1", "v2.0.2", "v2.0.3", "main", "tiny"] = Field(
        "v2.0.2",
        title="Base version",
        description="Which published XTTS to start from; tiny is a small one for trials.",
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
    output_path: Text = Field("output", title="Project folder", description="Holds dataset, runs and finished models.")

    num_epochs: int = Field(10, ge=1, le=1000, title="Epochs", description="Passes over the training clips.")
    batch_size: int = Field(8, ge=1, le=512, title="Batch size", description="Clips on the device at the same time.")
    grad_acumm: int = Field(
        2, ge=1, le=512, title="Gradient accumulation", description="Batches summed before one update."
    )
    max_audio_length: float = Field(
        11.6,
        ge=1.0,
        le=11.6,
        title="Longest clip (s)",
        description="Longer clips are set aside with a reason, never cut.",
    )
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
    gradient_clip: float = Field(
        1.0, gt=0, le=1000, title="Gradient clip", description="Longest gradient that is applied."
    )
    label_smoothing: float = Field(
        0.0, ge=0, lt=1, title="Label smoothing", description="Probability given to other codes."
    )
    seed: int = Field(0, ge=0, lt=2**32, title="Seed", description="Same seed, same data and same device: same run.")
    num_workers: int = Field(2, ge=0, le=64, title="Loading processes", description="Processes that read the features.")

    enable_grad_checkpoint: bool = Field(
        False,
        title="Gradient Checkpointing",
        description="Compute activations twice instead of keeping them: less memory.",
    )
    enable_sdpa: bool = Field(
        True, title="Fast Attention (SDPA)", description="Fused attention in GPT, conditioning encoder and perceiver."
    )
    enable_mixed_precision: bool = Field(
        True, title="Mixed Precision (FP16/BF16)", description="Half-precision arithmetic where this device has it."
    )
    enable_ema: bool = Field(False, title="EMA", description="Keep a running average of the weights and export it.")
    ema_decay: float = Field(
        0.999, gt=0, lt=1, title="EMA decay", description="Share of the average kept at each update."
    )
    freeze_first_n_gpt_layers: int = Field(
        0, ge=0, le=30, title="Frozen GPT layers", description="First layers of the GPT that are not trained."
    )
    freeze_conditioning: bool = Field(
        False, title="Freeze conditioning", description="Leave the part that listens to the reference untrained."
    )

    save_step: int = Field(1000, ge=1, title="Save every (steps)", description="Updates between two checkpoints.")
    save_n_checkpoints: int = Field(
        1, ge=1, le=100, title="Checkpoints kept", description="Newest ones kept besides the best."
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


class DatasetConfig(Config):
    """How recordings become clips with text."""

    inputs: Text = Field(
        "",
        title="Recordings",
        description="Files, folders or addresses, with | between them; subtitles beside a file belong to it.",
    )
    language: Language = Field("am", title="Language", description="Spoken language of the recordings.")
    speaker: Text = Field("speaker", title="Speaker", description="Who speaks, where no list tells.")

    segmenter: Literal["vad", "energy"] = Field(
        "vad", title="Segmenter", description="Cut by speech detection or by loudness."
    )
    vad_threshold: float = Field(
        0.5,
        ge=0.05,
        le=0.95,
        title="Speech threshold",
        description="How sure the detector has to be that it hears speech; lower keeps more.",
    )
    energy_threshold_db: float = Field(
        -40.0,
        ge=-90,
        le=-5,
        title="Loudness threshold (dB)",
        description="What is louder counts as speech; acts with segmenter energy only.",
    )
    min_seconds: float = Field(
        1.0, ge=0.3, le=11.6, title="Shortest clip (s)", description="Shorter clips are set aside."
    )
    max_seconds: float = Field(
        11.6, ge=1.0, le=11.6, title="Longest clip (s)", description="The limit of XTTS is 11.6."
    )
    padding_seconds: float = Field(
        0.15, ge=0.0, le=0.5, title="Padding (s)", description="Silence kept around the speech."
    )
    min_pause_seconds: float = Field(
        0.1,
        ge=0.05,
        le=2.0,
        title="Shortest pause (s)",
        description="A shorter silence is part of the speech around it.",
    )
    min_speech_seconds: float = Field(
        0.1,
        ge=0.0,
        le=2.0,
        title="Shortest sound (s)",
        description="A shorter sound between two pauses is a click, not speech.",
    )
    merge_pause_seconds: float = Field(
        0.5,
        ge=0.0,
        le=5.0,
        title="Merge below (s)",
        description="Neighbours with a shorter pause between them become one clip where the longest clip allows it.",
    )

    transcribe: bool = Field(
        True, title="Transcribe", description="Find the text of clips that have none; without it they are set aside."
    )
    whisper_model: Text = Field("large-v3", title="Whisper model", description="Size, or folder of a converted model.")
    second_model: Text = Field(
        "",
        title="Second model",
        description="Folder or name of a CTC model (MMS and the like) whose opinion is compared; empty: none.",
    )
    device: Literal["auto", "cuda", "cpu"] = Field("auto", title="Device", description="Where the transcription runs.")

    min_speech_ratio: float = Field(
        0.3, ge=0, le=1, title="Least speech", description="Smallest share of a clip that has to be speech."
    )
    min_snr_db: float = Field(
        10.0,
        ge=-20,
        le=100,
        title="Least SNR (dB)",
        description="Smallest distance between the speech and the noise in its pauses.",
    )
    max_clipping: float = Field(
        0.002,
        ge=0,
        le=1,
        title="Most clipping",
        description="Largest share of the samples that may stand at full scale.",
    )
    min_chars_per_second: float = Field(
        1.0,
        ge=0,
        le=100,
        title="Slowest text (letters/s)",
        description="Fewer letters a second mean that text is missing.",
    )
    max_chars_per_second: float = Field(
        25.0,
        gt=0,
        le=100,
        title="Fastest text (letters/s)",
        description="More letters a second mean that sound is missing.",
    )
    min_confidence: float = Field(
        0.3, ge=0, le=1, title="Least confidence", description="Smallest confidence of the recogniser."
    )
    max_second_cer: float = Field(
        0.3,
        ge=0,
        le=10,
        title="Most disagreement",
        description="Largest share of letters in which a second recogniser may differ.",
    )

    normalise_loudness: bool = Field(
        True, title="Same loudness", description="Bring every clip to -23 LUFS with its peaks below -1 dB."
    )
    eval_share: float = Field(
        0.05, gt=0, le=0.5, title="Evaluation share", description="Part of the recordings kept for evaluation."
    )
    split_by: Literal["recording", "speaker", "time"] = Field(
        "recording",
        title="Split by",
        description="What is held back whole; time holds back the end of each recording.",
    )
    workers: int = Field(
        0, ge=0, le=256, title="Processes", description="Recordings worked on at a time; 0: one for each core."
    )
    engine: Literal["local", "ray"] = Field(
        "local",
        title="Engine",
        description="Processes of this machine, or Ray (pip install ray) on the cluster that RAY_ADDRESS names: all of "
        "its machines need recordings and project in the same shared folder. Transcription stays on this machine.",
    )

    @model_validator(mode="after")
    def shortest_below_longest(self) -> Self:
        """Refuse limits that leave no clip."""
        if self.min_seconds >= self.max_seconds:
            raise ValueError(f"min_seconds ({self.min_seconds}) must be below max_seconds ({self.max_seconds})")
        return self

    def places(self) -> list[str]:
        """Return the inputs one by one."""
        return [place.strip() for place in self.inputs.split("|") if place.strip()]


class SpeechConfig(Config):
    """How a text is spoken."""

    language: Language = Field("am", title="Language", description="Language of the text.")
    temperature: float = Field(0.75, gt=0, le=2, title="Temperature", description="Higher: livelier and less reliable.")
    top_k: int = Field(50, ge=1, le=1026, title="Top k", description="Codes considered at each step.")
    top_p: float = Field(0.85, gt=0, le=1, title="Top p", description="Probability mass considered at each step.")
    repetition_penalty: float = Field(
        10.0, ge=1, le=50, title="Repetition penalty", description="Weight against repeats."
    )
    speed: float = Field(1.0, ge=0.5, le=2.0, title="Speed", description="Rate of speech without a change of pitch.")
    seed: int = Field(0, ge=0, lt=2**32, title="Seed", description="Same seed, same text and same voice: same audio.")


class FeaturesConfig(Config):
    """How clips are encoded for training."""

    model: Text = Field(
        "", title="Model folder", description="Holds dvae.pth, mel_stats.pth and vocab.json, as published."
    )
    device: Literal["auto", "cuda", "cpu"] = Field("auto", title="Device", description="Where the DVAE runs.")
    thorough: bool = Field(
        False, title="Check all", description="Read again every byte that is stored; what is damaged is made anew."
    )


class RehearsalConfig(Config):
    """How long a rehearsal counts."""

    seconds: float = Field(20.0, ge=0.1, le=86_400, title="Seconds", description="How long the rehearsal counts.")
    ticks_per_second: float = Field(
        2.0, gt=0, le=100, title="Ticks per second", description="Events written each second."
    )
