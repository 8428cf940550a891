"""The templates in ``data/``, from which files for people are written."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

DATA = Path(__file__).parent / "data"


def render(template: str, **values: object) -> str:
    """Fill in a template; values in HTML are escaped, and a missing one is an error."""
    environment = Environment(
        loader=FileSystemLoader(DATA),
        undefined=StrictUndefined,
        autoescape=select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(values)
