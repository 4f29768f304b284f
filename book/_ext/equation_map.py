"""Where each labelled equation is computed, and which equations a function computes, from `equations.yml`."""

import inspect
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from docutils.nodes import Node
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_BOOK = Path(__file__).parents[1]


def read() -> dict[str, dict[str, list[str]]]:
    """The places of each equation, by chapter and label."""
    entries = yaml.safe_load((_BOOK / "equations.yml").read_text())
    return {
        chapter: {
            label: [places] if isinstance(places, str) else places
            for label, places in labels.items()
        }
        for chapter, labels in entries.items()
    }


def resolve(name: str) -> Any:
    """The object of a dotted name.

    Raises
    ------
    LookupError
        There is none.
    """
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if not hasattr(found, part):
                raise LookupError(f"{name}: {found.__name__} has no {part!r}")
            found = (
                inspect.getattr_static(found, part)
                if inspect.isclass(found)
                else getattr(found, part)
            )
        return getattr(
            found, "func", getattr(found, "fget", found)
        )  # of a cached or plain property
    raise LookupError(f"{name}: no such module")


def line(name: str) -> tuple[str, int]:
    """The file of an object, relative to the repository, and its first line there."""
    found = inspect.unwrap(resolve(name))
    file = inspect.getsourcefile(found)
    assert file is not None
    return str(Path(file).relative_to(_BOOK.parent)), inspect.getsourcelines(
        found
    )[1]


def _title(number: str) -> str:
    (chapter,) = _BOOK.glob(f"{number}-*.ipynb")
    header = json.loads(chapter.read_text())["cells"][0]["source"]
    return header[0].removeprefix("# ").strip()


class EquationMap(SphinxDirective):
    """`{equation-map}`: a table for each chapter, then one of functions."""

    def run(self) -> list[Node]:
        back: dict[str, list[str]] = {}
        text = ""
        for number, labels in read().items():
            text += f"## {int(number)}. {_title(number)}\n\n"
            text += "| Equation | Computed or checked |\n|:--|:--|\n"
            for label, places in labels.items():
                shown = "; ".join(self._place(one) for one in places)
                text += f"| {{eq}}`{label}` | {shown} |\n"
                for one in filter(
                    lambda place: place.startswith("widebnn."), places
                ):
                    back.setdefault(one, []).append(f"{{eq}}`{label}`")
            text += "\n"
        text += "## From the code to the equations\n\n| Code | Equations |\n|:--|:--|\n"
        for name, equations in sorted(back.items()):
            text += f"| {self._place(name)} | {', '.join(equations)} |\n"
        return self.parse_text_to_nodes(text, allow_section_headings=True)

    def _place(self, place: str) -> str:
        if place.startswith("proof: "):
            return f"by proof only: {place.removeprefix('proof: ')}"
        if place.startswith("cell "):
            *chapter, cell = place.removeprefix("cell ").split()
            of = f" of chapter {int(chapter[0])}" if chapter else ""
            return f"cell `{cell}`{of}"
        file, number = line(place)
        repository = self.config.html_theme_options["repository_url"]
        return f"[`{place.removeprefix('widebnn.')}`]({repository}/blob/main/{file}#L{number})"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("equation-map", EquationMap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
