"""Choose a recogniser: the recommended ones of a language with their published error rates, and how to load a model."""

import ctypes
import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from utils.core import languages
from utils.core.facts import Report, ignore
from utils.core.paths import expand_home
from utils.core.storage import read_object
from utils.recognition.facts import RecogniserChanged
from utils.recognition.recognisers import CTC, TRANSFORMERS, WHISPER, Device, RecogniserSpec

Kind = Literal["auto", "whisper", "ctc", "none"]
CTC_PREFIX = "ctc:"
WHISPER_FILE = "model.bin"
DEFAULT_WHISPER = "large-v3"


class Recommended(NamedTuple):
    """A model with its published word error rate in percent, on clean studio speech if nothing else is said."""

    model: str
    kind: Literal["whisper", "ctc"]
    word_error: str
    about: str

    @property
    def label(self) -> str:
        return f"{self.model} · {self.word_error} % WER · {self.about}"


# SaarAI/GSMAEthioTelecomBench; the best of all, omniASR (10.2 to 18.9 %), is not in the format of transformers
RECOMMENDED = {
    languages.AMHARIC.code: (
        Recommended("badrex/Ethio-ASR-amharic", "ctc", "13.4", "w2v-BERT CTC, 600 M, CC-BY-4.0"),
        Recommended("facebook/mms-1b-all", "ctc", "81.1", "MMS CTC, 1 B, CC-BY-NC-4.0"),
        Recommended(DEFAULT_WHISPER, "whisper", "120 to 229", "Whisper, by its own paper"),
        Recommended("small", "whisper", "151.7", "Whisper"),
    )
}


def recommended(language: str) -> tuple[Recommended, ...]:
    """Return the recommended recognisers of a language, best first."""
    known = RECOMMENDED.get(languages.canonical(language))
    return known or (Recommended(DEFAULT_WHISPER, "whisper", "?", "Whisper"),)


def _best(kind: Kind, language: str) -> Recommended:
    """Return the best recogniser of a kind that is here, or else that can be downloaded."""
    fitting = [known for known in recommended(language) if kind in {"auto", known.kind}]
    fitting = fitting or [known for known in RECOMMENDED[languages.AMHARIC.code][1:] if known.kind == kind]
    return next(filter(_is_available, fitting), fitting[0])


def choose(
    kind: Kind,
    model: str,
    language: str,
    *,
    device: Device = "auto",
    compute_type: str = "auto",
    report: Report = ignore,
) -> RecogniserSpec:
    """Return how to load a model, or without one the best for the language that is here or can be downloaded.

    Whisper is run by transformers where CTranslate2 lacks its GPU libraries, and where only that can read the model.
    """
    if not model:
        best = _best(kind, language)
        kind = best.kind
        model = best.model
    elif kind == "auto":
        kind = "whisper" if _is_whisper(model) else "ctc"
    spec = RecogniserSpec(model, device, compute_type, CTC)
    if kind != "whisper":
        return spec
    if not _is_converted(model):
        return replace(spec, factory=TRANSFORMERS)
    spec = replace(spec, factory=WHISPER)
    missing = "" if device == "cpu" else missing_gpu_library()
    if not missing:
        return spec
    if Path(model).is_dir() or "/" in model:
        report(RecogniserChanged(model, "no_gpu", missing))
        return replace(spec, device="cpu")
    report(RecogniserChanged(model, "transformers", missing))
    return replace(spec, model=f"openai/whisper-{model}", factory=TRANSFORMERS)


def missing_gpu_library() -> str:
    """Return the library that CTranslate2 lacks for the GPU of this machine; empty without a GPU."""
    import ctranslate2

    if not ctranslate2.get_cuda_device_count():
        return ""
    library = "cublas64_12.dll" if sys.platform == "win32" else "libcublas.so.12"
    try:
        ctypes.CDLL(library)
    except OSError:
        return library
    return ""


def _is_whisper(model: str) -> bool:
    folder = expand_home(model)
    if not folder.is_dir():
        return "whisper" in model.lower() or "/" not in model
    if (folder / WHISPER_FILE).is_file():
        return True
    return read_object(folder / "config.json").get("model_type") == "whisper"


def _is_converted(model: str) -> bool:
    """Return whether a Whisper model is in the format of CTranslate2: a size, or a model that says so."""
    folder = expand_home(model)
    if folder.is_dir():
        return (folder / WHISPER_FILE).is_file() or not (folder / "config.json").is_file()
    return "/" not in model or any(word in model.lower() for word in ("faster", "ct2", "ctranslate2"))


def _is_available(known: Recommended) -> bool:
    """Return whether a model is in the cache of the Hugging Face hub, or on the hub."""
    import httpx2
    from huggingface_hub import file_exists, try_to_load_from_cache
    from huggingface_hub.errors import HfHubHTTPError

    name = known.model if "/" in known.model else f"Systran/faster-whisper-{known.model}"
    if isinstance(try_to_load_from_cache(name, "config.json"), str):
        return True
    try:
        return file_exists(name, "config.json")
    except (OSError, httpx2.HTTPError, HfHubHTTPError):  # no connection
        return False
