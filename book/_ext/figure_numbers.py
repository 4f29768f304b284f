"""Figures of a page without a chapter number are counted from one, not through all such pages."""

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def count_by_page(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Number them anew, after Sphinx has."""
    renumbered = []
    for page, kinds in env.toc_fignumbers.items():
        for kind, numbers in kinds.items():
            if any(len(number) == 1 for number in numbers.values()):
                kinds[kind] = {name: (i,) for i, name in enumerate(numbers, start=1)}
                renumbered.append(page)
    return renumbered


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("env-get-updated", count_by_page, priority=900)  # Sphinx's own numbering has 500
    return {"parallel_read_safe": True, "parallel_write_safe": True}
