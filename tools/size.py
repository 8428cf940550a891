"""Print the size of the program in syntax nodes, which folding lines does not change: ``python -m tools.size``.

The bytes are those of templates, scripts, styles, settings and tables. ``--functions`` also lists those over 250
nodes, ``--files FOLDER`` each file below a folder.
"""

import ast
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["utils", "tests", "testing", "benchmarks", "tools", "configs"]
TEXTS = {".css", ".html", ".js", ".toml", ".tsv", ".yaml"}
LONG = 250  # nodes of a function


def nodes(tree: ast.AST) -> int:
    return sum(1 for _ in ast.walk(tree))


def main(arguments: list[str]) -> None:
    """Print the totals, the long functions, or the files of a folder."""
    sizes, texts = Counter[str](), Counter[str]()
    folders = arguments[1:] if arguments[:1] == ["--files"] else FOLDERS
    for path in (path for folder in folders for path in sorted((ROOT / folder).rglob("*"))):
        name = path.relative_to(ROOT)
        parts = {name.parts[0], "/".join(name.parts[:2])} if name.parts[0] == "utils" else {name.parts[0]}
        if path.suffix in TEXTS:
            texts.update(dict.fromkeys(parts, path.stat().st_size))
        if path.suffix != ".py":
            continue
        tree = ast.parse(path.read_text("utf-8"))
        sizes.update(dict.fromkeys(parts, nodes(tree)))
        if "--files" in arguments:
            print(f"{nodes(tree):9,} {name}")
        for node in ast.walk(tree) if "--functions" in arguments else ():
            if isinstance(node, ast.FunctionDef) and nodes(node) > LONG:
                print(f"{nodes(node):9,} {name}:{node.lineno} {node.name}")
    for part in sorted({*sizes, *texts}):
        print(f"{part:<32} {sizes[part]:>9,} nodes {texts[part]:>9,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
