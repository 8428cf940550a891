"""Find what ``utils/integrations`` offers. Without that folder everything else works."""

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from utils.core.errors import IntegrationMissingError

PACKAGE = "utils.integrations"


def _registry() -> Any:  # noqa: ANN401  # a module that may not exist
    spec = importlib.util.find_spec(PACKAGE)
    return importlib.import_module(PACKAGE) if spec and spec.origin else None


def find(name: str) -> Any:  # noqa: ANN401  # each entry point has a signature of its own
    """Return an entry point; None if there are no integrations."""
    if not (registry := _registry()):
        return None
    module, _, function = registry.ENTRY_POINTS[name].partition(":")
    return getattr(importlib.import_module(f"{PACKAGE}.{module}"), function)


def require(name: str) -> Any:  # noqa: ANN401
    """Return an entry point that the user asked for."""
    if not (found := find(name)):
        raise IntegrationMissingError(name)
    return found


def commands() -> list[Path]:
    """Return the files of the commands among the integrations."""
    if not (registry := _registry()):
        return []
    folder = Path(registry.__file__).parent
    return [folder / f"{name}.py" for name in registry.COMMANDS]
