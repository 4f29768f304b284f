"""The chapters' form: what CONTRIBUTING.md promises of a notebook. That they run is for `book.executed`."""

import ast
import importlib
import inspect
import json
import pkgutil
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
import yaml
from nbstripout import strip_output
from pybtex.database import parse_file
from sphinx.pycode import ModuleAnalyzer

import widebnn as wb

ROOT = Path(__file__).parents[1]
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text())
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text())
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))
CHAPTERS = [path for path in NOTEBOOKS if path.stem[0].isdigit()]  # the others are pages of results
MAX_LINES = 25
MAX_COLUMNS = 78  # what a page shows
MAX_WORDS = 3_200
MAX_WORDS_IN_ALL = 45_000
MAX_SECONDS = 90  # at smoke scale
MAX_VISIBLE = 3_500  # lines of code on the pages, without those folded and blank ones
GREEK = (
    r"\\((?:alpha|beta|gamma|delta|(?:var)?epsilon|zeta|eta|(?:var)?theta|iota|kappa|lambda|mu|nu|xi|pi|rho"
    r"|(?:var)?sigma|tau|upsilon|(?:var)?phi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega))(?![a-zA-Z])"
)

INSTALL = """\
# In Colab, install the package; elsewhere, keep compiled programs on disk.
# A CPU runs at smoke scale and a GPU at colab scale; to choose another:
# %env WIDEBNN_SCALE=laptop
import importlib.metadata
import importlib.util
import shutil
import sys

if "google.colab" in sys.modules:
    import numpy  # loaded from the start, so it must not be replaced

    jax_spec = "jax[cuda12]" if shutil.which("nvidia-smi") else "jax"
    widebnn_spec = "widebnn @ git+REPOSITORY"
    numpy_spec = f"numpy=={numpy.__version__}"
    %pip install -q "{jax_spec}" "{widebnn_spec}" "{numpy_spec}"
    if not importlib.util.find_spec("widebnn"):  # nothing fits this NumPy
        %pip install -q "{jax_spec}" "{widebnn_spec}"
    if importlib.metadata.version("numpy") != numpy.__version__:
        get_ipython().kernel.do_shutdown(restart=True)
        raise SystemExit("NumPy is another one now: run all cells again.")
else:
    import widebnn

    widebnn.keep_compiled()
""".replace("REPOSITORY", CONFIG["repository"]["url"]).rstrip()


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def chapter(request: pytest.FixtureRequest) -> nbformat.NotebookNode:
    chapter = nbformat.read(request.param, as_version=4)
    chapter.metadata.number = str(int(request.param.stem[:2]))
    return chapter


def code_cells(chapter: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in chapter.cells if cell.cell_type == "code"]


def tags(cell: nbformat.NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def draws_figure(source: str) -> bool:
    """Whether a cell makes axes itself or lets `wb.plots` or ArviZ make them."""
    if "%pip" in source:  # the install cell is no plain Python
        return False
    calls = [ast.unparse(node.func) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return any(re.search(r"plt\.(subplots|figure)$|plots\.(?!style)\w+$|\.plot_\w+$", call) for call in calls)


def test_every_page_is_in_the_table_of_contents():
    entries = [entry for part in TOC["parts"] for entry in part["chapters"]]
    sections = [section for entry in entries for section in entry.get("sections", [])]
    files = {entry["file"] for entry in (*entries, *sections)} | {TOC["root"]}
    written = [path for of in ("*.md", "api/*.md") for path in (ROOT / "book").glob(of)]
    pages = {str(path.relative_to(ROOT).with_suffix("")) for path in [*NOTEBOOKS, *written]}
    assert files == pages
    numbered = [entry["file"] for entry in entries if re.match(r"book/\d", entry["file"])]
    assert numbered == [f"book/{path.stem}" for path in CHAPTERS], "numbers of files are those on the pages"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_valid_and_stripped(path: Path):
    chapter = nbformat.read(path, as_version=4)
    nbformat.validate(chapter)
    ids = [cell.get("id") for cell in json.loads(path.read_text())["cells"]]
    assert None not in ids
    assert len(set(ids)) == len(ids)
    stripped = strip_output(
        nbformat.read(path, as_version=4), keep_output=False, keep_count=False, keep_id=True
    )
    assert chapter.cells == stripped.cells, f"strip it: nbstripout --keep-id {path.relative_to(ROOT)}"
    assert chapter.metadata.kernelspec.name == "python3"


def test_header_states_prerequisites_and_run_time(chapter):
    header = chapter.cells[0]
    assert header.cell_type == "markdown"
    assert re.match(r"# \w", header.source)
    for row in ("Before it", "After it", "Run time"):
        assert re.search(rf"^\| \*\*{row}\*\* \| .+ \|$", header.source, re.MULTILINE), f"no row {row!r}"
    assert re.search(r"smoke: (?:\d+ to )?\d+ s on ", header.source), "no measured run time: run `make times`"


def test_programs_of_chapters_are_budgeted():
    """`book.executed` counts them as a chapter runs; two thirds of a chapter's time were compiling once."""
    budget = tomllib.loads((ROOT / "book/programs.toml").read_text())
    assert sorted(budget) == sorted(path.stem for path in NOTEBOOKS)
    assert max(budget.values()) <= 70 and sum(budget.values()) <= 800


def test_form_of_a_chapter(chapter):
    """Sphinx itself refuses names of figures and labels of equations that are given twice."""
    cells = code_cells(chapter)
    assert chapter.cells[1] == cells[0] and cells[0].source == INSTALL and tags(cells[0]) == ["remove-cell"]
    assert chapter.cells[-1].source == "wb.print_versions()"
    for cell in cells:
        lines = cell.source.splitlines()
        assert len(lines) <= MAX_LINES, f"cell {cell.id} is long"
        assert max(map(len, lines)) <= MAX_COLUMNS, f"cell {cell.id} is wide"
    assert sum("assert " in cell.source for cell in cells) >= 3, "it asserts too little of what it claims"
    assert not re.search(r"/(home|root|Users|work|tmp)/", "".join(cell.source for cell in chapter.cells))
    text = markdown(chapter)
    assert text.index(":::{admonition} In short") < text.index("**Next.**") < text.index("## Exercises")


def test_exercises_are_numbered_graded_and_solved(chapter):
    statement = r"^(?:\*\*Exercise|:+\{admonition\} (?:Theorem|Proposition)) (\d+)\."
    assert set(re.findall(statement, markdown(chapter), re.MULTILINE)) == {chapter.metadata.number}
    found = 0
    for cell, solution in zip(chapter.cells, chapter.cells[1:]):
        for exercise in re.findall(r"^\*\*Exercise .*", cell.source, re.MULTILINE):
            found += 1
            assert re.search(r"\*\((easy|medium|hard)\)\*", exercise)
            assert f"Solution {exercise.split()[1].strip('*')}" in solution.source
    assert found


def test_figures_have_alt_text_caption_and_reference(chapter):
    for cell in code_cells(chapter):
        shown = cell.metadata.get("mystnb", {})
        if draws_figure(cell.source) or shown:
            if "plots.slider(" not in cell.source:  # which takes its alternative text itself
                assert len(shown.get("image", {}).get("alt", "")) >= 20, f"cell {cell.id} needs alt text"
            assert shown.get("figure", {}).get("caption"), f"cell {cell.id} needs a caption"
            name = shown["figure"].get("name", "")
            assert name.startswith("fig-"), f"cell {cell.id} needs a name fig-…"
            is_referred_to = f"{{numref}}`{name}`" in markdown(chapter)
            assert is_referred_to or "hide-cell" in tags(cell), f"no word of {name}"


def markdown(chapter: nbformat.NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in chapter.cells if cell.cell_type == "markdown")


def mathematics(text: str) -> list[str]:
    return [a or b for a, b in re.findall(r"\$\$(.+?)\$\$|\$([^$]+)\$", text, re.DOTALL)]


def greek(formula: str) -> set[str]:
    return set(re.findall(GREEK, formula))


def test_a_picture_and_the_idea_come_first(chapter):
    figure = next(i for i, cell in enumerate(chapter.cells) if "mystnb" in cell.metadata)
    assert all(cell.cell_type == "code" for cell in chapter.cells[1:figure]), "text stands before the picture"
    assert chapter.cells[figure + 1].source.startswith("**The idea in one paragraph.**")


def num_words(chapter: nbformat.NotebookNode) -> int:
    return len(re.sub(r"\$\$.+?\$\$|\$[^$]+\$", "M", markdown(chapter), flags=re.DOTALL).split())


def test_book_is_short_enough():
    assert sum(num_words(nbformat.read(path, as_version=4)) for path in NOTEBOOKS) <= MAX_WORDS_IN_ALL


def test_book_shows_little_code():
    cells = [cell for path in NOTEBOOKS for cell in code_cells(nbformat.read(path, as_version=4))]
    lines = [line for cell in cells if not tags(cell) for line in cell.source.splitlines()]
    assert sum(bool(line.strip()) for line in lines) <= MAX_VISIBLE


def test_chapter_is_short_enough(chapter):
    assert num_words(chapter) <= MAX_WORDS
    (seconds,) = re.findall(r"smoke: (?:\d+ to )?(\d+) s on", chapter.cells[0].source)
    assert int(seconds) <= MAX_SECONDS


# Thresholds and settings of the papers and of the book, which are no results.
CONVENTIONS = {"1.01", "1.2", "0.98", "98 %"}


def test_numbers_in_prose_are_settings(chapter):
    """A result is printed by a cell: a decimal, a percentage or an error in prose stands in the code too."""
    code = "\n".join(cell.source for cell in code_cells(chapter))
    prose = re.sub(
        r"```\w*\n.+?```|\$\$.+?\$\$|\$[^$]+\$|`[^`]+`|\]\([^)]*\)"
        r"|(?:Exercise|Solution|Theorems?|Proposition|Figures?|App\.) [A-Z]?\.?\d+(?:\.\d+)?"
        r"(?:(?:, | and )\d\.\d)*",
        "",
        markdown(chapter).split("**Run time**")[1],
        flags=re.DOTALL,
    )
    assert "±" not in prose
    for number, percentage in re.findall(r"(?<![\w.,])(?:(\d+\.\d+)|(\d+) %)", prose):
        share = int(percentage or 0) / 100
        ways = {number, number.rstrip("0")} if number else {f"{percentage} %", f"{share:g}", f"{1 - share:g}"}
        found = any(re.search(rf"(?<![\d.]){re.escape(way)}(?![\d.])", code) for way in ways)
        assert found or ways & CONVENTIONS, f"{number or percentage} stands in no cell"


def notation() -> tuple[list[str], dict[str, set[str]]]:
    """The symbols that chapters share, and the letters that a chapter (by number) uses in its own way."""
    shared, own = (ROOT / "book/notation.md").read_text().split("(own-letters)=")
    symbols = [
        symbol
        for cell in re.findall(r"^\| (\$[^|]+) \|", shared, re.MULTILINE)
        for symbol in mathematics(cell)
    ]
    letters: dict[str, set[str]] = {}
    for letter, numbers in re.findall(r"^\| \$\\?(\w+)\$ \| ([\d, ]+) \|", own, re.MULTILINE):
        for number in numbers.split(", "):
            letters.setdefault(number.zfill(2), set()).add(letter)
    return symbols, letters


def capitals(formula: str) -> set[str]:
    """Single capital Latin letters in italics: no words, no calligraphic letters, no names of commands."""
    formula = re.sub(r"\\(?:text|math\w+|operatorname)\s*(?:\{[^{}]*\}|\w)|\\[A-Za-z]+", " ", formula)
    return set(re.findall(r"[A-Z]", formula))


def test_a_symbol_is_defined_once():
    symbols, _ = notation()
    variational = ("$p$", "$\\mu$", "$\\sigma$", "$q$")  # of which the page says that these chapters differ
    repeated = {symbol for symbol in symbols if symbols.count(symbol) > 1}
    assert len(symbols) > 30
    assert repeated <= {symbol.strip("$") for symbol in variational}


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_greek_and_capital_letters_stand_on_the_notation_page(path: Path):
    symbols, letters = notation()
    text = re.sub(r"```.*?```", "", markdown(nbformat.read(path, as_version=4)), flags=re.DOTALL)
    shared, used = (
        {letter for formula in formulas for letter in greek(formula) | capitals(formula)}
        for formulas in (symbols, mathematics(text))
    )
    own = letters.get(path.stem[:2], set())
    assert "phi" not in used, r"the glyph is \varphi"
    assert used <= shared | own
    assert own <= used, "the notation page lists a letter that the chapter does not use"


def test_each_equation_is_computed_checked_or_proved(monkeypatch):
    """The equation map names them all, and nothing that is not there."""
    monkeypatch.syspath_prepend(ROOT / "book/_ext")
    equation_map = importlib.import_module("equation_map")
    chapters = {
        path.stem[:2] if path in CHAPTERS else path.stem: nbformat.read(path, as_version=4)
        for path in NOTEBOOKS
    }
    cells = {number: {cell.id: cell.source for cell in code_cells(one)} for number, one in chapters.items()}
    entries = equation_map.read()
    for number, chapter in chapters.items():
        labels = re.findall(r"\$\$ \((eq-[\w-]+)\)", markdown(chapter))
        assert set(labels) == set(entries.get(number, ())), f"chapter {number}"
        if labels:
            assert set(labels) == set(equation_map.formulas(equation_map.page(number)))
    for number, labels in entries.items():
        for place in (place for places in labels.values() for place in places):
            kind, _, rest = place.partition(" ")
            if kind == "cell":
                *other, cell = rest.split()
                assert "assert " in cells[other[0] if other else number][cell], place
            elif kind == "proof:":
                assert rest
            else:
                file, _ = equation_map.line(place)
                assert file.startswith("widebnn/")
    with pytest.raises(LookupError, match="has no 'renamed'"):
        equation_map.line("widebnn.samplers.renamed")


def test_hidden_cells_are_solutions_that_check_themselves(chapter):
    for cell in code_cells(chapter)[1:]:
        assert set(tags(cell)) <= {"hide-cell", "hide-input"}, f"cell {cell.id} has tags {tags(cell)}"
        if "hide-cell" in tags(cell):
            assert cell.source.startswith("# Solution "), f"cell {cell.id} is folded away and no solution"
            assert any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(cell.source)))


def test_folded_code_draws_loads_tabulates_or_checks(chapter):
    """What a chapter teaches stands on the page: after the first picture no folded cell samples."""
    cells = code_cells(chapter)[1:]
    first = next(i for i, cell in enumerate(cells) if "mystnb" in cell.metadata)
    for cell in cells[:first]:
        assert tags(cell) == ["hide-input"], f"cell {cell.id} stands between a reader and the first picture"
    for cell in cells[first:]:
        if "hide-input" in tags(cell) and "mystnb" not in cell.metadata:
            assert not re.search(r"jax\.jit|wb\.sample\(|\.fit\(", cell.source), (
                f"cell {cell.id} folds away what it teaches"
            )
            shows = r"assert |print\(|\.table\(|wb\.results\(|tables\.|rows"
            assert re.search(shows, cell.source), (
                f"cell {cell.id} folds code that neither loads, tabulates nor checks"
            )


def documented_modules() -> dict[str, set[str]]:
    """The modules that the package reference documents, each with the members it names one by one."""
    pages = "".join(path.read_text() for path in sorted((ROOT / "book/api").glob("*.md")))
    sections = dict(re.findall(r"automodule:: (\S+)\n(.*?)(?=\.\. automodule|\Z)", pages, re.DOTALL))
    one_by_one = {name: set(re.findall(r"\.\. auto\w+:: (\w+)", text)) for name, text in sections.items()}
    for module, text in sections.items():
        excluded = set(re.findall(r"\w+", "".join(re.findall(r":exclude-members:(.*)", text))))
        left_out = excluded & set(importlib.import_module(module).__all__) - one_by_one[module]
        assert not left_out, f"{module}: {left_out} have no place"
    return one_by_one


def taught(source: str) -> set[tuple[str, str]]:
    """The (module, name) of everything that a cell takes from the package."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "widebnn":
            found |= {(node.module, alias.name) for alias in node.names}
        if isinstance(node, ast.Attribute):
            parts = ast.unparse(node).split(".")
            if parts[0] == "wb" and len(parts) == 2:
                found.add(("widebnn", parts[1]))
            if parts[0] == "wb" and len(parts) == 3 and inspect.ismodule(getattr(wb, parts[1], None)):
                found.add((f"widebnn.{parts[1]}", parts[2]))
    return found


def test_chapters_teach_what_is_exported_and_documented(chapter):
    cells = [cell.source for cell in code_cells(chapter) if "%pip" not in cell.source]
    names = set.union(*map(taught, cells))
    assert names
    for module, name in sorted(names):
        exported = importlib.import_module(module)
        assert name in exported.__all__, f"{module} does not export {name}"
        if not inspect.ismodule(getattr(exported, name)) and module != "widebnn":
            assert module in documented_modules(), f"no section for {module}"


def test_reference_documents_everything_public():
    sections = documented_modules()
    top = sections.pop("widebnn")
    # The modules whose names stand at the top of the package have no section of their own.
    modules = {module.name for module in pkgutil.iter_modules(wb.__path__) if module.name[0] != "_"}
    modules = modules - {"driver", "scale", "versions"} | {"checkpoints", "stopping", "streaming"}
    assert set(sections) == {f"widebnn.{name}" for name in modules}

    documented = {name for module in sections for name in importlib.import_module(module).__all__}
    assert set(wb.__all__) <= documented | modules | top


def test_reference_lists_everything_it_documents():
    page = (ROOT / "book/api.md").read_text()
    summaries = re.findall(r"\.\. summary:: (\S+)", page)
    assert sorted(["widebnn", *summaries]) == sorted(documented_modules())
    assert set(re.findall(r"~widebnn\.(\w+)", page)) == documented_modules()["widebnn"]


def test_docstrings_refer_to_addresses_that_the_reference_has():
    sections = documented_modules()
    named = {f"widebnn.{name}" for name in sections.pop("widebnn")}
    named |= {f"{module}.{name}" for module in sections for name in importlib.import_module(module).__all__}
    for path in (ROOT / "widebnn").rglob("*.py"):
        for reference in re.findall(r"(?<!`)`(widebnn[\w.]*)`(?!`)", path.read_text()):
            member_of = reference.rpartition(".")[0]
            assert {reference, member_of} & named or reference in sections, f"{path.name}: `{reference}`"


@pytest.fixture
def formulas(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "book/_ext")
    return importlib.import_module("formulas")


@pytest.mark.parametrize(
    ("formula", "latex"),
    [
        ("v = √(1 − β²) u + βξ", r"v = \sqrt{1 - \beta^{2}} u + \beta\xi"),
        (
            "½ ∑_j y_:jᵀ K̂_σ²⁻¹ y_:j + (d_out/2) log det K̂_σ²",
            r"\tfrac12 \sum_{j} y_{:j}^{\top} \hat{K}_{\sigma^{2}}^{-1} y_{:j}"
            r" + (d_{\mathrm{out}}/2) \log \det \hat{K}_{\sigma^{2}}",
        ),
        ("φ_W = Σ^−½ (W − μ)", r"\varphi_{W} = \Sigma^{-1/2} (W - \mu)"),
        ("f^ℓ = (σ_W/√d_(ℓ−1)) h^(ℓ−1)", r"f^{\ell} = (\sigma_{W}/\sqrt{d_{\ell-1}}) h^{\ell-1}"),
        ("Ψ*ΣΨ*ᵀ, ‖r̃‖², (n,)", r"\Psi^{\ast}\Sigma\Psi^{\ast\top}, \|\tilde{r}\|^{2}, (n{,})"),
    ],
)
def test_formula_of_a_docstring_is_latex_on_the_page(formulas, formula, latex):
    assert formulas.latex(formula) == latex


def test_long_formula_may_break_outside_brackets(formulas):
    energy = "H(u, m) = U(u) + ½‖u + m‖² + ½⟨u, m⟩"
    assert formulas.pieces(energy) == ["H(u, m) =", "U(u) +", "½‖u + m‖² +", "½⟨u, m⟩"]
    assert formulas.typeset("$(n, d_in)$") == r":math:`(n, d_{\mathrm{in}})`"
    assert formulas.typeset("$$R̂ = 1,$$") == r".. math:: \hat{R} = 1,"


def shown_docstrings() -> Iterator[tuple[str, str]]:
    """What the package reference shows, by name."""
    for module in map(importlib.import_module, documented_modules()):
        yield module.__name__, module.__doc__ or ""
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value):
                members = vars(value).items() if inspect.isclass(value) else ()
                for key, member in [(name, value), *members]:
                    if not key.startswith("_"):
                        yield f"{module.__name__}.{name}: {key}", inspect.getdoc(member) or ""
            if inspect.isclass(value):
                attributes = ModuleAnalyzer.for_module(value.__module__).find_attr_docs()
                for (owner, key), lines in attributes.items():
                    if owner == name:
                        yield f"{module.__name__}.{name}: {key}", "\n".join(lines)


def test_mathematics_of_docstrings_stands_between_dollars(formulas):
    text_or_code = importlib.import_module("docstrings")._CODE
    sign = re.compile(r"[Α-Ωα-ω∑∏√∇∂‖⟨½²³⁻ᵀ≤≥∝∈ℓ\u0302\u0303]|\b[a-z]_(?:in|out|[a-z:])\b")
    marked = 0
    for name, docstring in shown_docstrings():
        parts = text_or_code.split(docstring)
        assert not [text for text in parts[::2] if sign.search(text)], name
        for part in parts[1::2]:
            if part.startswith("$"):
                marked += 1
                assert formulas.typeset(part).isascii(), part
    assert marked > 500


def test_each_public_function_has_an_example(monkeypatch):
    """In its docstring or that of its module, or else in a chapter."""
    monkeypatch.syspath_prepend(ROOT / "book/_ext")
    shown = importlib.import_module("usage").examples()
    for module in map(importlib.import_module, documented_modules()):
        for name, function in inspect.getmembers(module, inspect.isroutine):
            if name in module.__all__:
                has_own = ">>>" in (inspect.getdoc(function) or "")
                has_shared = re.search(rf"(: |# or )wb.{name}\b", sys.modules[function.__module__].__doc__)
                assert has_own or has_shared or function in shown, f"{module.__name__}.{name}"
    excerpt = "import widebnn as wb\n\ntarget, sampler, reason = wb.auto(posterior)"
    assert shown[wb.auto] == ("00-tour", excerpt)


def test_each_public_constant_is_documented(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book/_ext")
    constants = importlib.import_module("constants").constants
    pages = "".join(path.read_text() for path in (ROOT / "book/api").glob("*.md"))
    for module in documented_modules():
        for name, docstring in constants(module).items():
            assert any(docstring), f"{module}.{name}"
            assert f".. constants:: {module}\n" in pages
    assert set(constants("widebnn.plots")) == {"LOOKS", "STYLE"}


def test_citations_agree():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    (entry,) = re.findall(r"```bibtex\n(.*?)```", (ROOT / "book/preface.md").read_text(), re.DOTALL)
    for value in (cited["title"], cited["authors"][0]["name"], cited["repository-code"]):
        assert f"{{{value}}}" in entry
    assert f"version {cited['version']}" in entry
    assert f"{{{cited['date-released'][:4]}}}" in entry
    assert cited["version"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_repository_address_is_the_same_everywhere():
    url = CONFIG["repository"]["url"]
    places = ["pyproject.toml", "CITATION.cff", "book/preface.md"]
    for place in places:
        text = (ROOT / place).read_text()
        assert url in text
        assert set(re.findall(r"https://github\.com/[\w-]+/[\w-]+", text)) == {url}, place
    owner, name = url.split("/")[-2:]
    pages = f"https://{owner}.github.io/{name}/"
    assert CONFIG["html"]["baseurl"] == CONFIG["sphinx"]["config"]["ogp_site_url"] == pages


def cited_in_docstrings() -> set[tuple[str, str]]:
    """First author and year of each 'Name et al. 2022', 'Name & Name (2022)' or 'Name et al. (2022)'."""
    pattern = re.compile(
        r"\b([A-Z][\w'-]+)(?: et al\.|(?:, [A-Z][\w'-]+)* (?:&|and) [A-Z][\w'-]+),? \(?((?:19|20)\d\d)\b"
    )
    found = set()
    for path in sorted((ROOT / "widebnn").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                found |= set(pattern.findall(" ".join((ast.get_docstring(node) or "").split())))
    return found


def test_bibliography_has_the_works_that_docstrings_cite():
    entries = parse_file(ROOT / "book/references.bib").entries.values()
    listed = {(entry.persons["author"][0].last_names[-1], entry.fields["year"]) for entry in entries}
    assert cited_in_docstrings()
    assert not cited_in_docstrings() - listed
