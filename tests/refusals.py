"""Whether something is refused as users see it: with an error of ours."""

from collections.abc import Callable

from utils.core.errors import AmharicTtsError


def is_refused(action: Callable[[], object]) -> bool:
    """Do something; whatever is no error of ours ends the test."""
    try:
        action()
    except AmharicTtsError:
        return True
    return False
