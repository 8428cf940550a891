"""Consent to the licence of the published model, given once and stored."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from utils.core.errors import AmharicTtsError
from utils.core.paths import LICENCE_CONSENT
from utils.core.storage import make_folder, read_json, write_atomically

LICENCE = "Coqui Public Model License 1.0.0"
VARIABLE = "COQUI_TOS_AGREED"  # the same as in coqui-tts


class LicenceError(AmharicTtsError):
    """The licence of the model has not been accepted."""


def accept_licence(name: str = "", path: Path = LICENCE_CONSENT) -> None:
    """Store the consent to the licence, with the name of who gave it, if known."""
    make_folder(path.parent)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    write_atomically(path, json.dumps({"licence": LICENCE, "accepted_by": name, "at": now}, indent=2))


def licence_accepted(path: Path = LICENCE_CONSENT) -> bool:
    """Return whether consent is stored, or given by the environment variable of coqui-tts."""
    if os.environ.get(VARIABLE) == "1":
        return True
    try:
        stored = read_json(path)
    except (OSError, ValueError):  # a damaged file is not consent
        return False
    return isinstance(stored, dict) and stored.get("licence") == LICENCE


def require_licence(path: Path = LICENCE_CONSENT) -> None:
    """Raise unless the licence was accepted."""
    if not licence_accepted(path):
        raise LicenceError(
            f"XTTS v2 is licensed for non-commercial use only ({LICENCE}), and the licence is not accepted yet.",
            hint=f"Read the licence on the hub. To accept it, add --accept-licence to the command or set {VARIABLE}=1.",
        )
