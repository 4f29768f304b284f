"""The labelled equations, where each is computed, and which a function computes, from `equations.yml`."""

import inspect
import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_BOOK = Path(__file__).parents[1]


def read() -> dict[str, dict[str, list[str]]]:
    """The places of each equation, by chapter and label."""
    entries = yaml.safe_load((_BOOK / "equations.yml").read_text())
    return {
        chapter: {label: [places] if isinstance(places, str) else places for label, places in labels.items()}
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
            found = inspect.getattr_static(found, part) if inspect.isclass(found) else getattr(found, part)
        return getattr(found, "func", getattr(found, "fget", found))  # of a cached or plain property
    raise LookupError(f"{name}: no such module")


def line(name: str) -> tuple[str, int]:
    """The file of an object, relative to the repository, and its first line there."""
    found = inspect.unwrap(resolve(name))
    file = inspect.getsourcefile(found)
    assert file is not None
    return str(Path(file).relative_to(_BOOK.parent)), inspect.getsourcelines(found)[1]


def page(key: str) -> Path:
    """The notebook of a chapter's number, or of a page's name."""
    (found,) = _BOOK.glob(f"{key}-*.ipynb" if key.isdigit() else f"{key}.ipynb")
    return found


def _cells(notebook: Path) -> list[dict[str, Any]]:
    return json.loads(notebook.read_text())["cells"]


def _title(key: str, notebook: Path) -> str:
    title = _cells(notebook)[0]["source"][0].removeprefix("# ").strip()
    return f"{int(key)}. {title}" if key.isdigit() else title


def formulas(notebook: Path) -> dict[str, str]:
    """By label, the equations of a notebook in LaTeX."""
    markdown = ("".join(cell["source"]) for cell in _cells(notebook) if cell["cell_type"] == "markdown")
    found = re.findall(r"\$\$((?:(?!\$\$).)+)\$\$ \((eq-[\w-]+)\)", "\n\n".join(markdown), re.DOTALL)
    return {label: formula.strip() for formula, label in found}


class EquationMap(SphinxDirective):
    """`{equation-map}`: the equations of each chapter, then a table of functions."""

    def run(self) -> list[nodes.Node]:
        back: dict[str, list[str]] = {}
        text = ""
        for key, labels in read().items():
            notebook = page(key)
            found = formulas(notebook)
            text += f"## {_title(key, notebook)}\n\n"
            for label, places in labels.items():
                shown = "; ".join(self._place(key, one) for one in places)
                text += f"{{eq}}`{label}` {shown}\n\n"
                text += f"$$\n{found[label]}\n$$\n\n"
                for one in filter(lambda place: place.startswith("widebnn."), places):
                    back.setdefault(one, []).append(f"{{eq}}`{label}`")
        text += "## From the code to the equations\n\n| Code | Equations |\n|:--|:--|\n"
        for name, equations in sorted(back.items()):
            text += f"| {self._place('', name)} | {', '.join(equations)} |\n"
        return self.parse_text_to_nodes(text, allow_section_headings=True)

    def _place(self, key: str, place: str) -> str:
        if place.startswith("proof: "):
            return f"by proof only: {place.removeprefix('proof: ')}"
        if place.startswith("cell "):
            *other, cell = place.removeprefix("cell ").split()
            address = f"{page(*other or [key]).stem}.html#cell-{cell}"
            return f'cell <a href="{address}"><code>{cell}</code></a>'
        file, number = line(place)
        repository = self.config.html_theme_options["repository_url"]
        return f"[`{place.removeprefix('widebnn.')}`]({repository}/blob/main/{file}#L{number})"


def name_cells(app: Sphinx, doctree: nodes.document) -> None:
    """Give each code cell the id `cell-NAME`, NAME its id in the notebook, so that links lead to it."""
    notebook = Path(app.env.doc2path(app.env.docname))
    if notebook.suffix == ".ipynb":
        cells = _cells(notebook)
        for node in doctree.findall(nodes.container):
            if node.get("nb_element") == "cell_code":
                node["ids"].append(f"cell-{cells[node['cell_index']]['id']}")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("equation-map", EquationMap)
    app.connect("doctree-read", name_cells)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
