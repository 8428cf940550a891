"""Adds the run kind ``count``, which only tests have, to this process; child processes import it through PYTHONPATH."""

import importlib.abc
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path


class CountFinder(importlib.abc.MetaPathFinder):
    """Finds ``utils.cli.count`` beside this file."""

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        if fullname != "utils.cli.count":
            return None
        return importlib.util.spec_from_file_location(fullname, Path(__file__).with_name("count.py"))


sys.meta_path.append(CountFinder())
