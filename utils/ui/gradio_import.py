"""gradio without the first thing that it does whenever it is imported: to write help for editors.

For each of its 76 classes it parses a whole file and renews a stub beside it, though its wheel brings these stubs
along. That takes nearly half of the time of ``import gradio``: docs/log.md.
"""

import importlib.util
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType

PLACE = "gradio.component_meta"
WORK = "create_or_modify_pyi"


def leave_out() -> None:
    """Let the import of gradio that comes write no stubs; one that is over is as it is."""
    if PLACE not in sys.modules:
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds one module once, where everybody finds it."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name != PLACE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec and spec.loader:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    """Loads a module as its own loader does, and then takes the work out of it."""

    def __init__(self, usual: Loader) -> None:
        self._usual = usual

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._usual.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._usual.exec_module(module)
        setattr(module, WORK, _nothing)


def _nothing(*_: object) -> None:
    """Stand for the work."""
