"""The settings of data preparation."""

from typing import Literal, Self

from pydantic import Field, model_validator

from utils.config.base import SEPARATOR, Config, Language, Text


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
        return [place.strip() for place in self.inputs.split(SEPARATOR) if place.strip()]
