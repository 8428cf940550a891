"""Long work of a project that goes on when its visitor leaves, one of a kind at a time."""

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

from utils.core.errors import AmharicTtsError, RunBusyError
from utils.runs.tasks import Work

logger = logging.getLogger(__name__)


class Errand:
    """One long work and the last that was heard of it.

    Args:
        task: Does it, and yields what is worth telling.
    """

    def __init__(self, task: Callable[[], Iterator[Any]]) -> None:
        self.work: Work[Any] = Work(task)
        self.last: Any = None
        self.error: Exception | None = None
        self._listener = threading.Thread(target=self._listen, name="errand", daemon=True)
        self._listener.start()

    @property
    def is_over(self) -> bool:
        """Tell whether it has ended."""
        return not self._listener.is_alive()

    def stop(self) -> None:
        """End it, and wait a moment for what it still writes."""
        self.work.break_off()
        self.work.wait(3.0)

    def _listen(self) -> None:
        try:
            for item in self.work.news():
                self.last = item if item is not None else self.last
        except Exception as error:  # it is shown, and logged when it is a fault of ours
            self.error = error
            if not isinstance(error, AmharicTtsError):
                logger.exception("A long work of the page failed.")


class Errands:
    """The long works of all projects."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Errand] = {}
        self._lock = threading.Lock()

    def begin(self, project: str, kind: str, task: Callable[[], Iterator[Any]]) -> Errand:
        """Begin one, unless one of its kind is going on in this project."""
        with self._lock:
            if (known := self._known.get((project, kind))) and not known.is_over:
                raise RunBusyError("It is going on already.", hint="Wait until it ends, or stop it.")
            found = self._known[project, kind] = Errand(task)
            return found

    def look(self, project: str, kind: str) -> Errand | None:
        """Return the one that was begun last."""
        return self._known.get((project, kind))

    def stop(self, project: str, kind: str) -> bool:
        """End the one that is going on; tell whether there was any."""
        found = self.look(project, kind)
        if found is None or found.is_over:
            return False
        found.stop()
        return True
