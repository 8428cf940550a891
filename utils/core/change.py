"""What a switch did."""

from dataclasses import dataclass

from utils.core.errors import AmharicTtsError


@dataclass(frozen=True)
class Change:
    """What a switch changed, counted while it was changed.

    Attributes:
        name: The switch, as the configuration names it.
        changed: How many live objects are different now; 0: nothing was to be done.
        detail: What they are, or why there were none, as words for the page.
    """

    name: str
    changed: int
    detail: str = ""


class SpeedupError(AmharicTtsError):
    """A switch cannot act on this model or on this machine."""
