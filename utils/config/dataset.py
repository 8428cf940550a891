"""Settings of data preparation and of encoding clips."""

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, model_validator

from utils.config.base import MODEL_SECONDS, Config, Language, Text, setting, split_values
from utils.config.facts import InvalidSettingsError, SettingProblem, broken


def proxy_without_password(url: str) -> str:
    """Refuse what yt-dlp cannot use, and a password, which settings and logs would store."""
    parts = urlsplit(url)
    if url and (parts.scheme not in {"http", "https", "socks4", "socks5", "socks5h"} or not parts.hostname):
        raise broken("proxy")
    if parts.password:
        raise broken("password")
    return url


Proxy = Annotated[Text, AfterValidator(proxy_without_password)]


class DatasetConfig(Config):
    """How to turn recordings into clips with text."""

    inputs: Text = setting(
        "", "Recordings", "Files, folders or URLs, separated by |. Subtitles with the same name are used."
    )
    corpus: Literal["none", "amharic-speech", "waxal", "afrivoice", "leyu", "openslr25", "fleurs", "common-voice"] = (
        setting("none", "Corpus", "Published Amharic recordings to download; their licences are in the data guide.")
    )
    hours: float = setting(
        0.0, "Hours", "Read this many hours of a corpus or of each hub dataset; 0 = all of it.", ge=0, le=100_000
    )
    language: Language = setting("am", "Language", "Language spoken in the recordings.")
    columns: Text = setting(
        "",
        "Columns of lists",
        "Which column holds what, as in audio=Datei,text=Satz (also speaker, start, end, duration); blank = by name "
        "or content.",
    )
    replace_texts: bool = setting(
        False,
        "Transcribe despite unused texts",
        "Transcribe recordings without text even if a text of the inputs could not be used and may be theirs.",
    )
    cookies: Text = setting("", "Cookies", "The cookies.txt file of a browser, for links that require a login.")
    proxy: Proxy = setting("", "Proxy", "Proxy for links, such as socks5://127.0.0.1:1080; blank = the system proxy.")
    speaker: Text = setting("speaker", "Default speaker name", "Used for recordings without a speaker name.")

    segmenter: Literal["vad", "energy"] = setting(
        "vad", "Segmenter", "Cut by voice activity detection (vad) or by loudness (energy)."
    )
    vad_threshold: float = setting(
        0.5,
        "Speech threshold",
        "Probability above which audio counts as speech; lower values keep more.",
        ge=0.05,
        le=0.95,
    )
    energy_threshold_db: float = setting(
        -40.0,
        "Loudness threshold (dB)",
        "Louder audio counts as speech. Used by the energy segmenter only.",
        ge=-90,
        le=-5,
    )
    min_seconds: float = setting(
        1.0, "Minimum clip length (s)", "Shorter clips are excluded.", ge=0.3, le=MODEL_SECONDS
    )
    max_seconds: float = setting(
        11.6, "Maximum clip length (s)", "Longer speech is split. The model allows 28 s.", ge=1.0, le=MODEL_SECONDS
    )
    padding_seconds: float = setting(0.15, "Padding (s)", "Silence kept before and after the speech.", ge=0.0, le=0.5)
    min_pause_seconds: float = setting(
        0.1, "Minimum pause (s)", "Shorter silences are part of the speech.", ge=0.05, le=2.0
    )
    min_speech_seconds: float = setting(
        0.1, "Minimum speech (s)", "Shorter sounds between two pauses count as clicks.", ge=0.0, le=2.0
    )
    merge_pause_seconds: float = setting(
        0.5,
        "Merge pauses below (s)",
        "Segments with a shorter pause between them are joined, up to the maximum clip length.",
        ge=0.0,
        le=5.0,
    )

    recogniser: Literal["auto", "whisper", "ctc", "none"] = setting(
        "auto",
        "Recogniser",
        "Transcribes recordings without text: the best one for the language (auto), Whisper, or a CTC model (w2v-BERT, "
        "MMS). With none, they are excluded.",
    )
    recogniser_model: Text = setting(
        "", "Recogniser model", "Whisper size, hub name or folder; blank = the recommended one for the language."
    )
    second_model: Text = setting(
        "",
        "Second model",
        "A CTC model such as MMS (name or folder) that is compared, also with given texts; blank = none.",
    )
    check_texts: bool = setting(
        True,
        "Check texts",
        "Align the texts of recordings with the audio: clips whose text does not match are excluded, and "
        "clips are cut by their words. Required for long recordings whose transcript has no times.",
    )
    repair_list: bool = setting(
        False,
        "Repair the list",
        "Where many texts of a list fit other clips, use the text that fits each clip. This can be undone.",
    )
    device: Literal["auto", "cuda", "cpu"] = setting("auto", "Device", "Device for transcription.")
    compute_type: Literal["auto", "int8", "int8_float16", "float16", "bfloat16", "float32"] = setting(
        "auto",
        "Number format",
        "Number format of the recogniser; auto is float16 on a GPU. Transformers models do not support int8.",
    )

    min_speech_ratio: float = setting(
        0.3, "Minimum speech share", "Minimum share of a clip that is speech.", ge=0, le=1
    )
    min_snr_db: float = setting(
        10.0, "Minimum SNR (dB)", "Minimum signal-to-noise ratio, measured in the pauses.", ge=-20, le=100
    )
    max_clipping: float = setting(
        0.002, "Maximum clipping", "Maximum share of samples at full scale or on a plateau below it.", ge=0, le=1
    )
    min_chars_per_second: float = setting(
        1.0, "Minimum characters per second", "Slower clips probably lack text.", ge=0, le=100
    )
    max_chars_per_second: float = setting(
        25.0, "Maximum characters per second", "Faster clips probably lack audio.", gt=0, le=100
    )
    min_confidence: float = setting(0.3, "Minimum confidence", "Minimum confidence of the transcription.", ge=0, le=1)
    max_second_cer: float = setting(
        0.3,
        "Maximum disagreement between recognisers",
        "Maximum character error rate between the two transcripts.",
        ge=0,
        le=10,
    )

    normalise_loudness: bool = setting(
        True, "Normalize loudness", "Bring every clip to -23 LUFS with peaks below -1 dB."
    )
    eval_share: float = setting(0.05, "Evaluation share", "Share of the audio held out for evaluation.", gt=0, le=0.5)
    split_by: Literal["recording", "speaker", "time"] = setting(
        "recording",
        "Split by",
        "What is held out: whole recordings, whole speakers, or the end of each recording (time).",
    )
    workers: int = setting(0, "Processes", "Recordings processed in parallel; 0 = one per CPU core.", ge=0, le=256)
    engine: Literal["local", "ray"] = setting(
        "local",
        "Engine",
        "Processes of this machine (local), or the Ray cluster in RAY_ADDRESS, whose machines need the recordings and "
        "the project at the same paths (ray).",
    )

    @model_validator(mode="after")
    def check_length_limits(self) -> Self:
        """Refuse limits that no clip can meet."""
        if self.min_seconds >= self.max_seconds:
            bound = f"max_seconds ({self.max_seconds})"
            raise InvalidSettingsError((SettingProblem("less_than", "min_seconds", str(self.min_seconds), bound),))
        return self

    def input_list(self) -> list[str]:
        listed = split_values(self.inputs)
        return listed if self.corpus == "none" else [*listed, f"corpus:{self.corpus}"]


class FeaturesConfig(Config):
    """How to encode clips for training."""

    model: Text = setting("", "Model folder", "Folder with dvae.pth, mel_stats.pth and vocab.json.")
    device: Literal["auto", "cuda", "cpu"] = setting("auto", "Device", "Device for the DVAE.")
    thorough: bool = setting(False, "Verify all", "Read all stored features again and recompute damaged ones.")
