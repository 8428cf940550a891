"""Settings of data preparation."""

from typing import Literal, Self

from pydantic import Field, model_validator

from utils.config.base import SEPARATOR, Config, Language, Text


class DatasetConfig(Config):
    """How to turn recordings into clips with text."""

    inputs: Text = Field(
        "",
        title="Recordings",
        description="Files, folders or URLs, separated by |. Subtitles with the same name are used.",
    )
    language: Language = Field("am", title="Language", description="Language spoken in the recordings.")
    speaker: Text = Field(
        "speaker", title="Default speaker name", description="Used for recordings without a speaker name."
    )

    segmenter: Literal["vad", "energy"] = Field(
        "vad", title="Segmenter", description="Cut by voice activity detection (vad) or by loudness (energy)."
    )
    vad_threshold: float = Field(
        0.5,
        ge=0.05,
        le=0.95,
        title="Speech threshold",
        description="Probability above which audio counts as speech; lower values keep more.",
    )
    energy_threshold_db: float = Field(
        -40.0,
        ge=-90,
        le=-5,
        title="Loudness threshold (dB)",
        description="Louder audio counts as speech. Used by the energy segmenter only.",
    )
    min_seconds: float = Field(
        1.0, ge=0.3, le=11.6, title="Minimum clip length (s)", description="Shorter clips are excluded."
    )
    max_seconds: float = Field(
        11.6,
        ge=1.0,
        le=11.6,
        title="Maximum clip length (s)",
        description="Longer speech is split; XTTS cannot use clips over 11.6 s.",
    )
    padding_seconds: float = Field(
        0.15, ge=0.0, le=0.5, title="Padding (s)", description="Silence kept before and after the speech."
    )
    min_pause_seconds: float = Field(
        0.1,
        ge=0.05,
        le=2.0,
        title="Minimum pause (s)",
        description="Shorter silences are part of the speech.",
    )
    min_speech_seconds: float = Field(
        0.1,
        ge=0.0,
        le=2.0,
        title="Minimum speech (s)",
        description="Shorter sounds between two pauses count as clicks.",
    )
    merge_pause_seconds: float = Field(
        0.5,
        ge=0.0,
        le=5.0,
        title="Merge pauses below (s)",
        description="Segments with a shorter pause between them are joined, up to the maximum clip length.",
    )

    transcribe: bool = Field(
        True, title="Transcribe", description="Transcribe files without subtitles; otherwise they are excluded."
    )
    whisper_model: Text = Field(
        "large-v3", title="Whisper model", description="Model size, or folder of a converted model."
    )
    second_model: Text = Field(
        "",
        title="Second model",
        description="Name or folder of a CTC model such as MMS whose transcripts are compared; blank = none.",
    )
    device: Literal["auto", "cuda", "cpu"] = Field("auto", title="Device", description="Device for transcription.")

    min_speech_ratio: float = Field(
        0.3, ge=0, le=1, title="Minimum speech share", description="Minimum share of a clip that is speech."
    )
    min_snr_db: float = Field(
        10.0,
        ge=-20,
        le=100,
        title="Minimum SNR (dB)",
        description="Minimum signal-to-noise ratio, measured in the pauses.",
    )
    max_clipping: float = Field(
        0.002,
        ge=0,
        le=1,
        title="Maximum clipping",
        description="Maximum share of samples at full scale.",
    )
    min_chars_per_second: float = Field(
        1.0,
        ge=0,
        le=100,
        title="Minimum characters per second",
        description="Slower clips probably lack text.",
    )
    max_chars_per_second: float = Field(
        25.0,
        gt=0,
        le=100,
        title="Maximum characters per second",
        description="Faster clips probably lack audio.",
    )
    min_confidence: float = Field(
        0.3, ge=0, le=1, title="Minimum confidence", description="Minimum confidence of the transcription."
    )
    max_second_cer: float = Field(
        0.3,
        ge=0,
        le=10,
        title="Maximum disagreement between recognisers",
        description="Maximum character error rate between the two transcripts.",
    )

    normalise_loudness: bool = Field(
        True, title="Normalize loudness", description="Bring every clip to -23 LUFS with peaks below -1 dB."
    )
    eval_share: float = Field(
        0.05, gt=0, le=0.5, title="Evaluation share", description="Share of the audio held out for evaluation."
    )
    split_by: Literal["recording", "speaker", "time"] = Field(
        "recording",
        title="Split by",
        description="What is held out: whole recordings, whole speakers, or the end of each recording (time).",
    )
    workers: int = Field(
        0, ge=0, le=256, title="Processes", description="Recordings processed in parallel; 0 = one per CPU core."
    )
    engine: Literal["local", "ray"] = Field(
        "local",
        title="Engine",
        description="local = processes of this machine; ray = the Ray cluster in RAY_ADDRESS (pip install ray). Its "
        "machines need the recordings and the project in a shared folder. Transcription stays on this machine.",
    )

    @model_validator(mode="after")
    def shortest_below_longest(self) -> Self:
        """Refuse limits that no clip can meet."""
        if self.min_seconds >= self.max_seconds:
            raise ValueError(f"min_seconds ({self.min_seconds}) must be below max_seconds ({self.max_seconds})")
        return self

    def input_list(self) -> list[str]:
        """Return the inputs as a list."""
        return [source.strip() for source in self.inputs.split(SEPARATOR) if source.strip()]
