"""What Sphinx shows of the package: mathematics in plain Unicode, attributes one by one, short signatures."""

import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import inspect

# Code in backticks and doctest lines stay; elsewhere `*`, `|` and a name's last `_` are mathematics.
# So do literal blocks.
_CODE = re.compile(
    r"(``.*?``|`.*?`|^\s*(?:>>>|\.\.\.).*?$"
    r"|::\n\n(?:(?: +[^\n]*)?(?:\n|\Z))+)",
    re.DOTALL | re.MULTILINE,
)
_MARKUP = re.compile(r"[*|]|(?<=\w)_(?!\w)")

_ATTRIBUTES = re.compile(
    r"^Attributes\n-+\n.*?(?=^\w+\n---|\Z)", re.DOTALL | re.MULTILINE
)
_TOGETHER = re.compile(
    r"^([\w\\]+(?:, [\w\\]+)+)\n((?:\n* +.*\n)+)", re.MULTILINE
)
_RESULT = re.compile(
    r"^(Returns|Yields)\n-+\n(.*?)(?=^\w+\n---|\Z)", re.DOTALL | re.MULTILINE
)
_DEFAULT = re.compile(r"<factory>|<function (?:[\w.]*<lambda>|[\w.]+)>")
_OF_BOTH = re.compile(r"([\w~.]+)\[Array, ('[^']*')\] \| \1\[ndarray, \2\]")
_TABLE = "~widebnn._arrays.Frame | ~collections.abc.Sequence[~typing.Any]"


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
    for i in range(2, len(parts), 2):
        if parts[i - 1].endswith("`"):
            parts[i] = re.sub(r"^(?=\w)", r"\\ ", parts[i])
    lines[:] = "".join(parts).split("\n")


def attributes(
    app: Sphinx,
    what: str,
    name: str,
    obj: object,
    options: object,
    lines: list[str],
) -> None:
    """Give each of `a, b` under Attributes an entry of its own, as napoleon does under Parameters alone."""
    text = "\n".join(lines)
    found = _ATTRIBUTES.search(text)
    if found:
        entries = _TOGETHER.sub(_one_by_one, found[0])
        text = text[: found.start()] + entries + text[found.end() :]
        lines[:] = text.split("\n")


def results(
    app: Sphinx,
    what: str,
    name: str,
    obj: object,
    options: object,
    lines: list[str],
) -> None:
    """Keep what a function returns or yields as the text that it is, which napoleon would cut into a list."""
    lines[:] = _RESULT.sub(_in_words, "\n".join(lines)).split("\n")


def _in_words(found: re.Match) -> str:
    body = found[2].strip("\n").split("\n")
    if (
        len(body) > 1
        and body[1].startswith(" ")
        and not body[0].startswith("- ")
    ):
        return found[0]  # a type and its description
    name = "returns" if found[1] == "Returns" else "Yields"
    indented = ["    " + line if line else "" for line in body]
    # Two blank lines end the section before it.
    return "\n".join(["", "", f":{name}:", *indented, "", ""])


def types(
    app: Sphinx,
    what: str,
    name: str,
    obj: object,
    options: object,
    lines: list[str],
) -> None:
    """Escape the `*` of shapes in types, which napoleon writes beside attributes."""
    for i, line in enumerate(lines):
        if line.startswith(":vartype"):
            lines[i] = line.replace("*", r"\*")


def _one_by_one(entry: re.Match) -> str:
    names, description = entry.groups()
    return "".join(f"{name}\n{description}" for name in names.split(", "))


def alternatives(
    app: Sphinx,
    what: str,
    name: str,
    obj: object,
    options: object,
    signature: str | None,
    return_annotation: str | None,
) -> tuple[str | None, str | None]:
    """Shapes once per array, whichever library it is of, and tables by name, as the code has them."""
    shown = signature, return_annotation
    of_both = (
        text and _OF_BOTH.sub(r"\1[Array | ndarray, \2]", text)
        for text in shown
    )
    signature, returned = (
        text and _DEFAULT.sub("...", text.replace(_TABLE, "Table"))
        for text in of_both
    )
    return signature, returned


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
    app.connect("autodoc-process-docstring", attributes, priority=410)
    app.connect("autodoc-process-docstring", results, priority=410)
    app.connect("autodoc-process-docstring", types, priority=600)
    # The first that answers is heard: what a constructor's metaclass hides is no array.
    app.connect("autodoc-process-signature", constructor)
    app.connect("autodoc-process-signature", alternatives)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
