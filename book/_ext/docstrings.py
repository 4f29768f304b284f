"""What Sphinx shows of the package: mathematics in plain Unicode, and constructors with their arguments."""

import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import inspect

# Code in backticks and doctest lines stay; elsewhere `*`, `|` and a name's last `_` are mathematics.
_CODE = re.compile(
    r"(``.*?``|`.*?`|^\s*(?:>>>|\.\.\.).*?$)", re.DOTALL | re.MULTILINE
)
_MARKUP = re.compile(r"[*|]|(?<=\w)_(?!\w)")


def escape(
    app: Sphinx,
    what: str,
    name: str,
    obj: object,
    options: object,
    lines: list[str],
) -> None:
    """Escape the lines of one docstring in place; odd parts of the split are code."""
    # All that Python itself knows of a field.
    if lines and lines[0].startswith("Alias for field number"):
        lines.clear()
    parts = _CODE.split("\n".join(lines))
    parts[::2] = [_MARKUP.sub(r"\\\g<0>", text) for text in parts[::2]]
    # A plural's s right behind a closing backtick needs an escaped space, which leaves no trace.
    parts[2::2] = [re.sub(r"^(?=\w)", r"\\ ", text) for text in parts[2::2]]
    lines[:] = "".join(parts).split("\n")


def constructor(
    app: Sphinx,
    what: str,
    name: str,
    obj: Any,
    options: object,
    signature: str | None,
    return_annotation: str | None,
) -> tuple[str, None] | None:
    """The arguments of a class whose metaclass hides them; a protocol has none."""
    if what != "class" or not (signature or "").startswith("(*args"):
        return None
    if getattr(obj, "_is_protocol", False):
        return "", None
    arguments = inspect.signature(obj.__init__, bound_method=True)
    shown = inspect.stringify_signature(
        arguments, show_return_annotation=False, unqualified_typehints=True
    )
    return shown, None


def setup(app: Sphinx) -> dict[str, bool]:
    # Before napoleon (500), whose own markup must survive.
    app.connect("autodoc-process-docstring", escape, priority=400)
    app.connect("autodoc-process-signature", constructor)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
