"""Where on the tab each setting of a preparation stands: every field once, in the order in which a person works."""

from utils.config import DatasetConfig

PLACES = ("inputs",)  # stands below the sources, which fill it
BASIC = ("language", "speaker", "whisper_model")
GROUPS = {
    "data.transcription": ("transcribe", "second_model", "device"),
    "data.segmentation": (
        "segmenter",
        "vad_threshold",
        "energy_threshold_db",
        "min_seconds",
        "max_seconds",
        "padding_seconds",
        "min_pause_seconds",
        "min_speech_seconds",
        "merge_pause_seconds",
    ),
    "data.quality_filters": (
        "min_speech_ratio",
        "min_snr_db",
        "max_clipping",
        "min_chars_per_second",
        "max_chars_per_second",
        "min_confidence",
        "max_second_cer",
    ),
    "data.loudness_and_evaluation": ("normalise_loudness", "eval_share", "split_by", "workers", "engine"),
}
SHOWN = (*BASIC, *(name for names in GROUPS.values() for name in names))
WHISPER_SIZES = ("tiny", "base", "small", "medium", "large-v3", "large-v3-turbo")


def filled(config: DatasetConfig) -> list[object]:
    """Return what every widget of the settings shall hold, in the order of ``SHOWN``."""
    return [getattr(config, name) for name in SHOWN]
