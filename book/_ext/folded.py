"""What a fold says: a folded cell is a solution, folded code alone is that of a figure or the imports."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform


class FoldedCode(SphinxPostTransform):
    """Give folded code a prompt of its own, before MyST-NB folds it (199)."""

    default_priority = 198
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for cell in self.document.findall(nodes.container):
            if cell.get("hide_mode") == "input":
                what = "the code"
                if "import widebnn as wb" in cell.astext():
                    what = "the imports"
                elif next(cell.findall(nodes.image), None):
                    what = "the code of the figure"
                cell["prompt_show"] = f"Show {what}"
                cell["prompt_hide"] = f"Hide {what}"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_post_transform(FoldedCode)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
