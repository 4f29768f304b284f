"""The formulas of docstrings, between dollars and in Unicode, as LaTeX for the pages.

After `_` or `^` comes one sign, or a word in small letters. A longer index or exponent stands in brackets,
which the page leaves out: `$f^ℓ = (σ_W/√d_(ℓ−1)) h^(ℓ−1) W^ℓ$`.
"""

import re
import unicodedata

_BRACKETS = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_INDEX = rf"{_BRACKETS}|σ²|[:−]?[a-z]+|−?½|≤L|\S"
_PART = re.compile(
    rf"√(?P<sqrt>{_BRACKETS}|[\d.]+|[^\W_](?:_(?:{_INDEX}))?)"
    rf"|_(?P<below>{_INDEX})|\^(?P<above>{_INDEX})"
    r"|(?P<lowered>[₀-₉]+)|(?P<raised>[⁰¹²³⁴-⁹⁻ᵀ*]+)"
    "|(?P<hat>\\w)\u0302|(?P<tilde>\\w)\u0303"
    r"|(?P<sign> [|‖] |N(?=\()|,(?=\))|\.{3}|~|[^\x00-\x7f])|(?P<name>[A-Za-z]+)"
)
_FORMS = {"below": "_", "lowered": "_", "above": "^", "raised": "^"}
_FORMS |= {kind: rf"\{kind}" for kind in ("sqrt", "hat", "tilde")}

_COMMANDS = """
α alpha β beta γ gamma δ delta ε varepsilon ζ zeta η eta θ theta ι iota κ kappa λ lambda μ mu ν nu ξ xi π pi
ρ rho σ sigma τ tau φ varphi χ chi ψ psi ω omega Γ Gamma Δ Delta Θ Theta Λ Lambda Ξ Xi Π Pi Σ Sigma Φ Phi
Ψ Psi Ω Omega
ℓ ell ∑ sum ∏ prod ∇ nabla ∂ partial · cdot × times ⊙ odot ∗ ast ± pm ∓ mp ⟨ langle ⟩ rangle ⌈ lceil ⌉ rceil
⌊ lfloor ⌋ rfloor ~ sim ≤ le ≥ ge ≠ ne ∝ propto ∈ in → to ← gets ↦ mapsto ∞ infty ⊤ top ⊥ perp … dots
"""
_FUNCTIONS = "cos det exp log max min sin sup"
_OPERATORS = "Cov Exp GP KL Tr Var acc conf diag relu round slerp softmax tr"
# a null ends the name of a command, and becomes a space where a letter follows
_SIGNS = {sign: f"\\{name}\0" for sign, name in re.findall(r"(\S) (\w+)", _COMMANDS)}
_SIGNS |= {"−": "-", "′": "'", "‖": r"\|", "½": r"\tfrac12", "...": r"\dots"}
_SIGNS |= {" | ": r" \mid ", " ‖ ": r" \,\|\, ", "N": r"\mathcal{N}", ",": "{,}"}
_NAMES = {name: f"\\{name}\0" for name in _FUNCTIONS.split()}
_NAMES |= {name: rf"\operatorname{{{name}}}" for name in _OPERATORS.split()}
_NAMES |= {name: rf"\mathrm{{{name}}}" for name in ("ELBO", "ESS", "in")}
_NAMES["E"] = r"\mathbb{E}"

_CLOSED = re.compile(rf"{_BRACKETS}|\[[^]]*]|⟨[^⟩]*⟩|‖\S[^‖]*‖|\|\S[^|]*\|")
_BREAK = re.compile(r"(?<= [=<>≤≥~∝←↦+−·]) |(?<=,) ")
_MAX_UNBROKEN = 25


def latex(formula: str) -> str:
    """For `√(1 − β²) u`, `\\sqrt{1 - \\beta^{2}} u`."""
    whole = _PART.sub(_part, formula)
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
        text = unicodedata.normalize("NFKC", text)
        text = text.replace("T", "⊤").replace("*", "∗")
    elif kind == "above":
        text = text.replace("½", "1/2")
    inside = text[1:-1] if text.startswith("(") else text
    return f"{_FORMS[kind]}{{{latex(inside)}}}"


def pieces(formula: str) -> list[str]:
    """The parts of a formula: after a comma, a relation or an operator outside brackets a line may break."""
    if len(formula) <= _MAX_UNBROKEN:
        return [formula]
    outside = _CLOSED.sub(lambda found: "x" * len(found[0]), formula)
    breaks = [found.start() for found in _BREAK.finditer(outside)]
    return [formula[start:end].strip() for start, end in zip([0, *breaks], [*breaks, None], strict=True)]


def typeset(formula: str) -> str:
    """A formula and its dollars in reStructuredText: `$λ > 0$` in the line, `$$…$$` on a line of its own."""
    inside = " ".join(formula.strip("$").split())
    if formula.startswith("$$"):
        return f".. math:: {latex(inside)}"
    # an empty group keeps the space around a sign at the end
    return r"{}`\ :math:`".join(map(latex, pieces(inside))).join((":math:`", "`"))
