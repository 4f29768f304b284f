"""A figure with a slider: it moves in a static page and stands still without JavaScript."""

import base64
import io
import json
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

from widebnn.plots._style import style

__all__ = ["Slider", "slider"]

# The slider's value is the index of the picture to be seen.
_MOVE = (
    "const box = this.closest('.slider'), texts = JSON.parse(this.dataset.texts);"
    "box.querySelectorAll('img').forEach((picture, i) => {picture.hidden = i != this.value});"
    "box.querySelector('output').textContent = texts[this.value];"
    "this.setAttribute('aria-valuetext', texts[this.value])"
)


class Slider(NamedTuple):
    """Pictures with a slider below, which notebooks show as HTML."""

    pictures: list[bytes]
    """PNG files, one per value."""
    texts: list[str]
    """What the slider says at each picture."""
    start: int
    """Index of the picture that is shown first; without JavaScript it is the only one."""
    alt: str
    """What the pictures show, for those who do not see them."""

    def _repr_html_(self) -> str:
        pictures = "".join(
            f'<img src="data:image/png;base64,{base64.b64encode(png).decode()}" '
            f'alt="{escape(f"{self.alt} Here {text}.")}" {"" if i == self.start else "hidden"} '
            'style="width: 100%; max-width: 44rem">'
            for i, (png, text) in enumerate(zip(self.pictures, self.texts, strict=True))
        )
        texts = escape(json.dumps(self.texts))
        now = escape(self.texts[self.start])
        slide = (
            f'<input type="range" min="0" max="{len(self.texts) - 1}" value="{self.start}" '
            f'autocomplete="off" aria-label="{escape(self.alt)}" aria-valuetext="{now}" '
            f'data-texts="{texts}" oninput="{escape(_MOVE)}" style="flex: 1">'
        )
        return (
            f'<div class="slider">{pictures}<div style="display: flex; gap: 1em; max-width: 44rem">{slide}'
            f'<output style="min-width: 9em">{now}</output></div></div>'
        )


def slider(
    draw: Callable[[Figure, Any], object],
    values: Sequence[Any],
    *,
    text: str,
    alt: str,
    start: int = 0,
    figsize: tuple[float, float] = (5.0, 3.5),
) -> Slider:
    """Draw one picture per value and let the reader slide from one to the next.

    The result is one piece of HTML that needs nothing else: it works in a notebook and in a static page.

    Parameters
    ----------
    draw
        Takes a new figure in the package's style and a value, and draws on it.
    values
        The slider's values, in order; at least two. A picture takes about 20 kB of a page.
    text
        What the slider says at a value, as a format string: ``"width {:,}"``.
    alt
        What the pictures show, for those who do not see them.
    start
        Index of the value whose picture is shown first; without JavaScript it is the only one.
    figsize
        Width and height of a picture, in inches.

    Returns
    -------
    Slider
        Shown by a notebook where it is the last expression of a cell.
    """
    if len(values) < 2:
        raise ValueError(f"values must hold at least two values to slide between; got {len(values)}")
    if not 0 <= start < len(values):
        raise ValueError(f"start must be an index of values, 0 to {len(values) - 1}; got {start}")
    if not alt.strip():
        raise ValueError("alt must say what the pictures show; got an empty text")
    pictures = []
    for value in values:
        with style():
            figure = plt.figure(figsize=figsize)
            draw(figure, value)
            file = io.BytesIO()
            figure.savefig(file, format="png")
            plt.close(figure)
        palette = io.BytesIO()  # of 32 colours, which takes a quarter of the bytes of a page
        Image.open(file).convert("RGB").quantize(32).save(palette, "png", optimize=True)
        pictures.append(palette.getvalue())
    return Slider(pictures, [text.format(value) for value in values], start, alt)
