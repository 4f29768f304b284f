"""What Sphinx shows of the package: formulas as formulas, results in words, short signatures."""

import pkgutil
import re
from collections.abc import Callable
from typing import Any

from docutils import nodes
from formulas import typeset
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.ext.autodoc import FunctionDocumenter
from sphinx.util import inspect

import widebnn

# Formulas stand between dollars. Code in backticks, doctest lines and literal blocks stay as they are;
# elsewhere `*`, `|` and a name's last `_` are no markup.
_CODE = re.compile(
    r"(\$\$?[^$]+\$\$?|``.*?``|`.*?`|^\s*(?:>>>|\.\.\.).*?$"
    r"|::\n\n(?:(?: +[^\n]*)?(?:\n|\Z))+)",
    re.DOTALL | re.MULTILINE,
)
_MARKUP = re.compile(r"[*|]|(?<=\w)_(?!\w)")

# An argument may be named as a module is, to which it is no link.
_MODULES = {module.name for module in pkgutil.iter_modules(widebnn.__path__) if not module.ispkg}
_NAME = re.compile(r"(?<!`)`(\w+)`(?!`)")

_RESULT = re.compile(r"^(Returns|Yields)\n-+\n(.*?)(?=^\w+\n---|\Z)", re.DOTALL | re.MULTILINE)
_DEFAULT = re.compile(r"<factory>|<function (?:[\w.]*<lambda>|[\w.]+)>")
_OF_BOTH = re.compile(r"([\w~.]+)\[Array, ('[^']*')\] \| \1\[ndarray, \2\]")
_TABLE = "~widebnn._arrays.Frame | ~collections.abc.Sequence[~typing.Any]"
# Two libraries have a Module; and types within a PyTree are written in full.
_FLAX = re.compile(r"~flax\.(nnx|linen)(?:\.\w+)*\.Module\b")
_WITHIN = re.compile(r"(?<![~\w.])jaxtyping\.")


def escape(text: str) -> str:
    """Escape a docstring and set its formulas; odd parts of the split are formulas or code."""
    parts = _CODE.split(text)
    parts[::2] = [_MARKUP.sub(r"\\\g<0>", text) for text in parts[::2]]
    parts[1::2] = [
        typeset(text) if text.startswith("$") else _NAME.sub(_argument, text) for text in parts[1::2]
    ]
    # A plural's s right behind a closing backtick needs an escaped space, which leaves no trace.
    for i in range(2, len(parts), 2):
        if parts[i - 1].endswith("`"):
            parts[i] = re.sub(r"^(?=\w)", r"\\ ", parts[i])
    return "".join(parts)


def _argument(found: re.Match) -> str:
    return f"``{found[1]}``" if found[1] in _MODULES else found[0]


def results(text: str) -> str:
    """Keep what a function returns or yields as the text that it is, which napoleon would cut into a list."""
    return _RESULT.sub(_in_words, text)


def _in_words(found: re.Match) -> str:
    body = found[2].strip("\n").split("\n")
    if len(body) > 1 and body[1].startswith(" ") and not body[0].startswith("- "):
        return found[0]  # a type and its description
    name = "returns" if found[1] == "Returns" else "Yields"
    indented = ["    " + line if line else "" for line in body]
    # Two blank lines end the section before it.
    return "\n".join(["", "", f":{name}:", *indented, "", ""])


def _changed(change: Callable[[str], str]) -> Callable[..., None]:
    """What Sphinx calls with the lines of a docstring, from a change of its text."""

    def handler(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
        lines[:] = change("\n".join(lines)).split("\n")

    return handler


def alternatives(
    app: Sphinx,
    what: str,
    name: str,
    obj: object,
    options: object,
    signature: str | None,
    return_annotation: str | None,
) -> tuple[str | None, str | None]:
    """Shapes once per array, whichever library it is of; modules by library and tables by name."""
    named = (
        text and _WITHIN.sub("", _FLAX.sub(r"\1.Module", text)) for text in (signature, return_annotation)
    )
    of_both = (text and _OF_BOTH.sub(r"\1[Array | ndarray, \2]", text) for text in named)
    signature, returned = (text and _DEFAULT.sub("...", text.replace(_TABLE, "Tabular")) for text in of_both)
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
    shown = inspect.stringify_signature(arguments, show_return_annotation=False, unqualified_typehints=True)
    return shown, None


def undescribed(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: object) -> bool | None:
    """Leave out a field of which Python alone says something, its number; None lets others choose."""
    is_number = (inspect.getdoc(obj) or "").startswith("Alias for field number")
    return True if is_number else None


def by_name(app: Sphinx, doctree: nodes.document) -> None:
    """Name a type within a property's PyTree as it is named elsewhere."""
    for signature in doctree.findall(addnodes.desc_signature):
        for text in list(signature.findall(nodes.Text)):
            if text.startswith("jaxtyping."):
                short = text.removeprefix("jaxtyping.")
                text.parent.replace(text, nodes.Text(short))


def setup(app: Sphinx) -> dict[str, bool]:
    # A page begins with what users call: `sample` before `Draws`, `whitened` before the class it returns.
    FunctionDocumenter.member_order = 0
    app.connect("autodoc-skip-member", undescribed)
    app.connect("doctree-read", by_name)
    # Before napoleon (500), whose own markup must survive.
    for change in (escape, results):
        app.connect("autodoc-process-docstring", _changed(change), priority=400)
    # The first that answers is heard: what a constructor's metaclass hides is no array.
    app.connect("autodoc-process-signature", constructor)
    app.connect("autodoc-process-signature", alternatives)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
