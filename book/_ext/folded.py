"""What a fold says: a folded cell is a solution, folded code alone is that of a figure."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform


class FigureCode(SphinxPostTransform):
    """Give folded code a prompt of its own, before MyST-NB folds it (199)."""

    default_priority = 198
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for cell in self.document.findall(nodes.container):
            if cell.get("hide_mode") == "input":
                cell["prompt_show"] = "Show the code of the figure"
                cell["prompt_hide"] = "Hide the code of the figure"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_post_transform(FigureCode)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
