"""The page about the calls, made from their OpenAPI description; it needs no other computer and runs no script."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .3rem .6rem; vertical-align: top }
tr { border-bottom: 1px solid #8884 } code, pre { font-family: ui-monospace, monospace } pre { overflow-x: auto }
pre, td:first-child { background: #8881 } pre { padding: .8rem }
@media (prefers-color-scheme: dark) { body { background: #16181c; color: #e8e8e8 } a { color: #8ab4ff } }
"""
EXAMPLE = """curl ADDRESS/v1/audio/speech -H 'Content-Type: application/json' \\
  -d '{"input": "ሰላም ለዓለም።", "response_format": "wav"}' --output hello.wav"""
HOW = (
    "<p>Where a key is set, send it as <code>Authorization: Bearer KEY</code>. "
    "Programs read <a href='openapi.json'>openapi.json</a>.</p>"
)
BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}

Schema = Mapping[str, Any]


def html(description: Schema) -> str:
    """Write the page."""
    about = description["info"]
    return "".join(
        [
            "<!doctype html><html lang='en'><meta charset='utf-8'>",
            "<meta name='viewport' content='width=device-width'>",
            f"<title>{escape(about['title'])}</title><style>{STYLE}</style>",
            f"<h1>{escape(about['title'])}</h1><p>{escape(about['description'])}</p>",
            HOW,
            f"<pre>{escape(EXAMPLE)}</pre>",
            *_calls(description["paths"]),
        ]
    )


def _calls(paths: Schema) -> Iterator[str]:
    for path, methods in paths.items():
        for method, call in methods.items():
            yield f"<h2><code>{escape(method.upper())} {escape(path)}</code></h2>"
            yield f"<p>{escape(call.get('description') or call.get('summary', ''))}</p>"
            content = call.get("requestBody", {}).get("content", {})
            for kind in content.values():
                yield from _fields(kind["schema"])


def _fields(schema: Schema) -> Iterator[str]:
    yield "<table><tr><th>Field<th>Kind<th>Default<th>What it is</tr>"
    for name, field in schema["properties"].items():
        default = "needed" if name in schema.get("required", ()) else repr(field.get("default"))
        cells = (f"<code>{escape(name)}</code>", escape(_kind(field)), escape(default), escape(field["description"]))
        yield f"<tr>{''.join(f'<td>{cell}' for cell in cells)}</tr>"
    yield "</table>"


def _kind(field: Schema) -> str:
    if "enum" in field:
        return " | ".join(map(str, field["enum"]))
    bounds = [f"{sign} {field[name]:g}" for name, sign in BOUNDS.items() if name in field]
    return ", ".join([str(field.get("type", "")), *bounds])
