"""HTML of the page: the macros in ``templates``, which escape all text they are given."""

import functools
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from utils.ui.i18n import t

ASSETS = Path(__file__).with_name("assets")
TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)


def text_of(text: str, **values: object) -> str:
    """Write the phrase of an id, which has a dot; any other text, such as a name that a person gave, stays as it is."""
    return t(text, **values) if "." in text else text


TEMPLATES.globals["t"] = text_of


@functools.cache
def _template(file: str) -> Template:
    return TEMPLATES.get_template(file)


def html(file: str, macro: str, *values: object, **named: object) -> str:
    """Return what a macro makes of values; only those that the macro marks as safe may be HTML."""
    return str(getattr(_template(file).module, macro)(*values, **named)).strip()


def styles(*names: str) -> str:
    """Return style sheets of the page, one after the other."""
    return "\n".join((ASSETS / f"{name}.css").read_text(encoding="utf-8") for name in names)
