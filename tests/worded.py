"""Errors with a text of their own, for tests of what shows any error."""

from utils.core.errors import AmharicTtsError
from utils.core.wording import Wording, rows


def worded(base: type[AmharicTtsError], sentence: str, cure: str = "") -> AmharicTtsError:
    """Return an error of a kind that says this, in English only."""
    kind: type[AmharicTtsError] = type(f"Worded{base.__name__}", (base,), {})
    rows()[kind.__name__] = Wording(kind.__name__, sentence, "")
    rows()[f"{kind.__name__}.cure"] = Wording(f"{kind.__name__}.cure", cure, "")
    return kind()
