"""A table of a module's public functions and classes, each with the first sentence of its docstring."""

from importlib import import_module
from typing import get_origin

from docutils.nodes import Node
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.ext.autosummary import Autosummary


class Summary(Autosummary):
    """`.. summary:: widebnn.vi` lists what `widebnn.vi.__all__` names."""

    required_arguments = 1
    has_content = False

    def run(self) -> list[Node]:
        (name,) = self.arguments
        module = import_module(name)
        # a constant or an alias of a type has no docstring of its own
        public = [
            one for one in module.__all__ if callable(it := getattr(module, one)) and not get_origin(it)
        ]
        self.options["nosignatures"] = None
        self.content = StringList([f"~{name}.{one}" for one in public], source=name)
        return super().run()


def setup(app: Sphinx) -> dict[str, bool]:
    app.setup_extension("sphinx.ext.autosummary")
    app.add_directive("summary", Summary)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
