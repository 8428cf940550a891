"""Models by name, and what to say when one cannot be had."""

import contextlib
from collections.abc import Iterator

from utils.dataset.transcription import RecognitionError


@contextlib.contextmanager
def obtaining(model: str) -> Iterator[None]:
    """Say what to do when a model is neither on this machine nor to be downloaded."""
    from huggingface_hub.errors import EntryNotFoundError, HFValidationError

    try:
        yield
    except (OSError, EntryNotFoundError, HFValidationError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise RecognitionError(
            f"The model {model} is not on this machine, or is damaged, and was not downloaded: {reason}.",
            hint="Connect to the internet, or give the folder of a model that is here.",
        ) from error
