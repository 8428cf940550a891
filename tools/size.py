"""Print the size of the program in syntax nodes, which folding lines does not change: ``python -m tools.size``.

The bytes are those of templates, scripts, styles, settings and tables. ``--functions`` lists those over 250 nodes,
``--files FOLDER`` each file below a folder with its lines.
"""

import ast
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXTS = {".css", ".html", ".js", ".toml", ".tsv", ".yaml"}
LONG = 250  # nodes of a function


def nodes(tree: ast.AST) -> int:
    return sum(1 for _ in ast.walk(tree))


def main(arguments: list[str]) -> None:
    """Print the totals, the long functions, or the files of a folder."""
    if arguments[:1] == ["--files"]:
        for path in sorted((ROOT / arguments[1]).rglob("*.py")):
            text = path.read_text("utf-8")
            sys.stdout.write(f"{path.stem:<20} {text.count(chr(10)):>5} lines {nodes(ast.parse(text)):>7,} nodes\n")
        return
    sizes, texts = Counter[str](), Counter[str]()
    tops = ("utils", "tests", "benchmarks", "tools", "configs")
    for path in (path for top in tops for path in (ROOT / top).rglob("*")):
        name = path.relative_to(ROOT)
        parts = {name.parts[0], "/".join(name.parts[:2])} if name.parts[0] == "utils" else {name.parts[0]}
        if path.suffix in TEXTS:
            texts.update(dict.fromkeys(parts, path.stat().st_size))
        elif path.suffix == ".py":
            tree = ast.parse(path.read_text("utf-8"))
            sizes.update(dict.fromkeys(parts, nodes(tree)))
            functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and nodes(node) > LONG]
            for node in functions if "--functions" in arguments else ():
                sys.stdout.write(f"{nodes(node):6} {name}:{node.lineno} {node.name}\n")
    for part in sorted({*sizes, *texts}) if "--functions" not in arguments else ():
        sys.stdout.write(f"{part:<32} {sizes[part]:>9,} nodes {texts[part]:>9,} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
