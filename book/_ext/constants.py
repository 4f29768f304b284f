"""A module's public constants and types, each with its docstring, which Python itself does not keep."""

import ast
import inspect
from importlib import import_module
from typing import get_origin

from docstrings import escape
from docutils.nodes import Node
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective


def constants(name: str) -> dict[str, list[str]]:
    """The docstring of each constant or type that a module exports from another, in lines."""
    module = import_module(name)
    places = {
        alias.asname or alias.name: str(node.module)
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    found = {}
    for one in module.__all__:
        it = getattr(module, one)
        # autodoc finds those that stand in the module itself
        is_constant = not callable(it) or get_origin(it)
        if one in places and is_constant and not inspect.ismodule(it):
            docs = ModuleAnalyzer.for_module(places[one]).find_attr_docs()
            docstring = "\n".join(docs.get(("", one), []))
            found[one] = escape(docstring).splitlines()
    return found


class Constants(SphinxDirective):
    """`.. constants:: widebnn.plots` documents `widebnn.plots.LOOKS` and its like."""

    required_arguments = 1

    def run(self) -> list[Node]:
        (name,) = self.arguments
        lines = StringList()
        for one, docstring in constants(name).items():
            for line in (
                f".. py:data:: {one}",
                f"   :module: {name}",
                "",
                *(f"   {line}" for line in docstring),
                "",
            ):
                lines.append(line, name)
        return self.parse_text_to_nodes(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("constants", Constants)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
