"""The formulas of docstrings, between dollars and in Unicode, as LaTeX for the pages.

After `_` or `^` comes a sign, or a word in small letters; a longer index or exponent stands in brackets, which the
page leaves out: `$f^ℓ = (σ_W/√d_(ℓ−1)) h^(ℓ−1) W^ℓ$`.
"""

import re
import unicodedata

_BRACKETS = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_INDEX = rf"{_BRACKETS}|σ²|[:−]?[a-z]+|−?½|≤L|\S"
_PART = re.compile(
    rf"√(?P<sqrt>{_BRACKETS}|[\d.]+|[^\W_](?:_(?:{_INDEX}))?)|_(?P<below>{_INDEX})|\^(?P<above>{_INDEX})"
    "|(?P<raised>[⁰¹²³⁴-⁹⁻ᵀ*]+)|(?P<lowered>[₀-₉]+)|(?P<hat>\\w)\u0302|(?P<tilde>\\w)\u0303"
    r"|(?P<sign> [|‖] |N(?=\()|[^\x00-\x7f]|~|\.\.\.)|(?P<name>[A-Za-z]+)"
)
_FORMS = {
    "sqrt": r"\sqrt",
    "below": "_",
    "above": "^",
    "raised": "^",
    "lowered": "_",
    "hat": r"\hat",
    "tilde": r"\tilde",
}
_SIGNS = {
    sign: "\\" + (name.title() if sign.isupper() else name) + "\0"
    for sign in "αβγδζηθικλμνξπρστχψωΓΔΘΛΞΠΣΦΨΩ"
    for name in [
        unicodedata.name(sign).split()[-1].lower().replace("lamda", "lambda")
    ]
}
_SIGNS |= {
    sign: f"\\{name}\0"
    for sign, name in zip(
        "φε·×≤≥≠∝∈→↦←∞∇∂⟨⟩⌈⌉⌊⌋⊙∗±∓∏∑…~ℓ⊥⊤",
        [
            "varphi",
            "varepsilon",
            "cdot",
            "times",
            "le",
            "ge",
            "ne",
            "propto",
            "in",
            "to",
            "mapsto",
            "gets",
            "infty",
            "nabla",
            "partial",
            "langle",
            "rangle",
            "lceil",
            "rceil",
            "lfloor",
            "rfloor",
            "odot",
            "ast",
            "pm",
            "mp",
            "prod",
            "sum",
            "dots",
            "sim",
            "ell",
            "perp",
            "top",
        ],
        strict=True,
    )
}
_SIGNS |= {
    "−": "-",
    "′": "'",
    "‖": r"\|",
    "½": r"\tfrac12",
    " | ": r" \mid ",
    " ‖ ": r" \,\|\, ",
}
_SIGNS |= {"N": r"\mathcal{N}", "...": r"\dots"}
_NAMES = {
    name: f"\\{name}\0"
    for name in ["cos", "det", "exp", "log", "max", "min", "sin", "sup"]
}
_NAMES |= {
    name: rf"\operatorname{{{name}}}"
    for name in [
        "Cov",
        "Exp",
        "GP",
        "KL",
        "Tr",
        "Var",
        "acc",
        "conf",
        "diag",
        "relu",
        "round",
        "slerp",
        "softmax",
        "tr",
    ]
}
_NAMES |= {"E": r"\mathbb{E}", "ESS": r"\mathrm{ESS}", "in": r"\mathrm{in}"}


def latex(formula: str) -> str:
    """For `√(1 − β²) u`, `\\sqrt{1 - \\beta^{2}} u`."""
    whole = _PART.sub(_part, " ".join(formula.split()))
    return re.sub("\0(?=[A-Za-z])", " ", whole).replace("\0", "")


def _part(found: re.Match) -> str:
    kind = str(found.lastgroup)
    text = found[kind]
    if kind == "sign":
        return _SIGNS.get(text, text)
    if kind == "name":
        is_word = len(text) > 2 and text.islower()
        return _NAMES.get(text, rf"\mathrm{{{text}}}" if is_word else text)
    if kind in ("raised", "lowered"):
        text = unicodedata.normalize("NFKC", text).translate(
            {ord("T"): "⊤", ord("*"): "∗"}
        )
    elif kind == "above":
        text = text.replace("½", "1/2")
    if text[0] == "(":
        text = text[1:-1]
    return f"{_FORMS[kind]}{{{latex(text)}}}"


def typeset(formula: str) -> str:
    """A formula and its dollars in reStructuredText: `$λ > 0$` in the line, `$$…$$` on lines of its own."""
    inside = latex(formula.strip("$"))
    return (
        f".. math:: {inside}"
        if formula.startswith("$$")
        else f":math:`{inside}`"
    )
