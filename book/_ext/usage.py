"""Examples of the package reference: the first use of a function in a chapter, so that each has run.

A docstring with an example of its own keeps that.
"""

import ast
import json
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

_BOOK = Path(__file__).parents[1]
_MAX_LINES = 12


@cache
def examples() -> dict[Callable, tuple[str, str]]:
    """The chapter and the statement that first name each function or class of the package.

    The imports that the statement needs stand before it.
    """
    found: dict[Callable, tuple[str, str]] = {}
    for path in sorted(_BOOK.glob("*.ipynb")):
        names: dict[str, Any] = {}
        imports: dict[str, str] = {}
        for cell in json.loads(path.read_text())["cells"]:
            source = "".join(cell["source"])
            # the install cell is no plain Python
            if cell["cell_type"] == "code" and "%pip" not in source:
                imports |= _imports(source)
                for called, statement in _uses(source, names):
                    whole = _with_imports(statement, imports)
                    found.setdefault(called, (path.stem, whole))
    return found


def _imports(source: str) -> dict[str, str]:
    """By the name that it binds, each import of a cell."""
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            origin = isinstance(node, ast.ImportFrom) and f"from {node.module} "
            for alias in node.names:
                line = f"{origin or ''}import {ast.unparse(alias)}"
                found[alias.asname or alias.name.partition(".")[0]] = line
    return found


def _with_imports(statement: str, imports: dict[str, str]) -> str:
    """The statement after the imports of the names that it uses."""
    used = {node.id for node in ast.walk(ast.parse(statement)) if isinstance(node, ast.Name)}
    lines = [line for name, line in imports.items() if name in used]
    return "\n".join([*lines, "", statement]) if lines else statement


def _uses(source: str, names: dict[str, Any]) -> Iterator[tuple[Callable, str]]:
    """What a cell names of the package, each with its statement; `names` are those imported so far."""
    for statement in ast.walk(ast.parse(source)):
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                if alias.name == "widebnn":
                    names[alias.asname or "widebnn"] = import_module("widebnn")
        elif isinstance(statement, ast.ImportFrom):
            if str(statement.module).startswith("widebnn"):
                module = import_module(str(statement.module))
                for alias in statement.names:
                    names[alias.asname or alias.name] = getattr(module, alias.name)
        # outside its function a return is no statement
        elif isinstance(statement, ast.stmt) and not isinstance(statement, ast.Return):
            segment = ast.get_source_segment(source, statement, padded=True)
            shown = textwrap.dedent(str(segment)).rstrip()
            if shown.count("\n") < _MAX_LINES:
                for node in ast.walk(statement):
                    if isinstance(node, ast.Name | ast.Attribute):
                        used = _named(node, names)
                        if callable(used):
                            yield used, shown


def _named(node: ast.expr, names: dict[str, Any]) -> Any:
    """The function or class of the package that an expression names, if it does."""
    if isinstance(node, ast.Name):
        found = names.get(node.id)
    elif isinstance(node, ast.Attribute):
        found = getattr(_named(node.value, names), node.attr, None)
    else:
        found = None
    return found


def add_example(app: Sphinx, what: str, name: str, obj: Any, options: object, lines: list[str]) -> None:
    """Append the example of a function or class that has none of its own."""
    if what not in ("function", "class") or any(">>>" in at for at in lines):
        return
    if obj in examples():
        chapter, statement = examples()[obj]
        lines += ["", "Examples", "--------", f"From :doc:`/book/{chapter}`:"]
        lines += ["", ".. code-block:: python", ""]
        lines += [f"   {line}" for line in statement.splitlines()]
        lines += [""]


def setup(app: Sphinx) -> dict[str, bool]:
    # After the markup is escaped (400) and before napoleon (500), which sets the section.
    app.connect("autodoc-process-docstring", add_example, priority=450)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
