"""What an optimization did to a model."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """What an optimization changed, counted while it was changed.

    Attributes:
        name: The setting that asked for it.
        changed: How many live objects are different now; 0 when there was nothing to do.
        detail: What they are, or why there were none.
    """

    name: str
    changed: int
    detail: str = ""
