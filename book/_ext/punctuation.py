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
            text = formula.next_node(descend=False, siblings=True)
            if isinstance(text, nodes.Text) and (
                mark := PUNCTUATION.match(text)
            ):
                together = nodes.inline(classes=["unbroken"])
                formula.replace_self(together)
                together += [formula, nodes.Text(mark[0])]
                text.parent.replace(text, nodes.Text(text[mark.end() :]))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_post_transform(Punctuation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
