"""Report facts and errors without wording, phrases without a translation, and phrases that nothing uses.

Run it as ``python -m tools.translations``. It reports only; it never fails.
"""

import ast
import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator
from enum import Enum, StrEnum
from typing import Any

import utils
from utils.config import Config, DatasetConfig, DownloadConfig, SpeechConfig, TrainConfig
from utils.core.errors import ERRORS
from utils.core.facts import KINDS, Unrecognised
from utils.core.fields import literals
from utils.core.paths import ROOT
from utils.core.wording import rows
from utils.studio.page_settings import PageSettings
from utils.ui.i18n import field_area

CONFIGS: tuple[type[Config], ...] = (
    TrainConfig,
    DatasetConfig,
    SpeechConfig,
    DownloadConfig,
    PageSettings,
)


def main() -> None:
    """Print the report."""
    for problem in [*missing(), *(f"{name}: not used" for name in unused())]:
        sys.stdout.write(f"{problem}\n")


def missing() -> Iterator[str]:
    """Yield what has no text in a language."""
    yield from (f"{row.id}: no translation" for row in rows().values() if not row.amharic)
    yield from (f"{name}: no translation" for name in sorted(set(_field_ids()) - rows().keys()))
    yield from (
        f"{name}: no wording" for name in sorted({*_wordings()}) if name not in rows() or not rows()[name].english
    )


def unused() -> list[str]:
    """Return the rows that no fact, error or setting has, and no code names: whole, or as a pattern with gaps."""
    texts = {name for config in CONFIGS for name in config.model_fields}
    texts |= {path.stem for path in (ROOT / "configs").rglob("*.yaml")}
    for path in (ROOT / "utils").rglob("*.html"):
        texts |= {*re.findall(r't\("([\w.]+)"', path.read_text(encoding="utf-8"))}
    patterns: list[re.Pattern[str]] = []
    for path in (ROOT / "utils").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            elif isinstance(node, ast.JoinedStr) and any(map(_is_part_of_id, node.values)):
                patterns.append(re.compile("".join(map(_pattern, node.values))))
    known = texts | {*_wordings(), *_members(), *_field_ids(), *(kind.__name__ for kind in ERRORS.values())}

    def is_used(name: str) -> bool:
        shorter = (
            name.removesuffix(end) for end in (".cure", ".plain", ".names_path", "_hint", "_one") if name.endswith(end)
        )
        filled = (match for pattern in patterns if (match := pattern.fullmatch(name)))
        parts = ([part for gap in match.groups() for part in gap.split(".")] for match in filled)
        return name in known or any(map(is_used, shorter)) or any(map(texts.issuperset, parts))

    return [name for name in rows() if not is_used(name)]


def _is_part_of_id(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and re.search(r"[a-z]\.|\.[a-z]", str(node.value)) is not None


def _pattern(node: ast.expr) -> str:
    return re.escape(str(node.value)) if isinstance(node, ast.Constant) else "(.+)"


def _members() -> Iterator[str]:
    """Yield the ids of the members of all enumerations."""
    kinds = [*StrEnum.__subclasses__(), *Enum.__subclasses__()]
    yield from (f"{kind.__name__}.{member.value}" for kind in kinds for member in kind)


def _wordings() -> Iterator[str]:
    """Yield the ids of all facts and errors, and of the members of the enumerations in their fields."""
    for module in pkgutil.walk_packages(utils.__path__, "utils."):
        if module.name.endswith((".facts", ".errors", ".schema", ".monitor")):
            importlib.import_module(module.name)
    kinds: list[Any] = [*KINDS.values(), *(kind for kind in ERRORS.values() if kind.fields)]
    for kind in kinds:
        if kind.__subclasses__() or kind is Unrecognised:
            continue
        yield kind.__name__
        yield from (f"{owner}.{value}" for name, owner in kind.reasons.items() for value in literals(kind.fields[name]))
        enums = (each for each in kind.fields.values() if isinstance(each, type) and issubclass(each, Enum))
        yield from (f"{enum.__name__}.{member.value}" for enum in enums for member in enum)


def _field_ids() -> Iterator[str]:
    for config in CONFIGS:
        for name in config.model_fields:
            yield from (f"{field_area(config)}.{name}.{part}" for part in ("title", "description"))


if __name__ == "__main__":
    main()
