"""Consent to the licence of the published model, asked for once and kept."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from utils.core.errors import AmharicTtsError
from utils.core.paths import LICENCE_CONSENT
from utils.core.storage import make_folder, read_json, write_atomically

LICENCE = "Coqui Public Model License 1.0.0"
VARIABLE = "COQUI_TOS_AGREED"  # coqui-tts asks for the same one


class LicenceError(AmharicTtsError):
    """The licence of the model has not been accepted yet."""


def accept_licence(name: str = "", path: Path = LICENCE_CONSENT) -> None:
    """Store that somebody read the licence and agrees to it.

    Args:
        name: Who; may be empty.
        path: Where to keep it.
    """
    make_folder(path.parent)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    write_atomically(path, json.dumps({"licence": LICENCE, "accepted_by": name, "at": now}, indent=2))


def licence_accepted(path: Path = LICENCE_CONSENT) -> bool:
    """Tell whether consent is stored, or given by the variable that coqui-tts reads."""
    if os.environ.get(VARIABLE) == "1":
        return True
    try:
        stored = read_json(path)
    except (OSError, ValueError):  # a damaged file is no consent
        return False
    return isinstance(stored, dict) and stored.get("licence") == LICENCE


def require_licence(path: Path = LICENCE_CONSENT) -> None:
    """Refuse to download the model before its licence is accepted."""
    if not licence_accepted(path):
        raise LicenceError(
            f"XTTS v2 comes under the {LICENCE}, for non-commercial use only, and nobody has agreed to it yet.",
            hint="Read it beside the model on the hub; to agree, add --accept-licence to the command, "
            f"or set {VARIABLE}=1.",
        )
