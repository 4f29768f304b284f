"""A full stop stays with the formula before it: no line begins with punctuation."""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

PUNCTUATION = re.compile(r"[.,;:!?)’”-]+")


class Punctuation(SphinxPostTransform):
    """Wrap a formula within the text, and the punctuation that follows it, in a span that does not break."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for formula in list(self.document.findall(nodes.math)):
            parent, place = formula.parent, formula.parent.index(formula)
            text = formula.next_node(descend=False, siblings=True)
            if isinstance(text, nodes.Text) and (mark := PUNCTUATION.match(text)):
                together = nodes.inline(classes=["unbroken"])
                together += [formula, nodes.Text(mark[0])]
                rest = nodes.Text(text[mark.end() :])
                # by place: another text of the paragraph may equal this one
                parent[place : place + 2] = [together, rest]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_post_transform(Punctuation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
