"""The chapters' form: what CONTRIBUTING.md promises of a notebook. That they run is for `book.executed`."""

import ast
import importlib
import inspect
import json
import pkgutil
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
import yaml
from nbstripout import strip_output
from pybtex.database import parse_file

import widebnn as wb

ROOT = Path(__file__).parents[1]
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text())
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text())
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))
CHAPTERS = [path for path in NOTEBOOKS if path.stem[0].isdigit()]  # the others are pages of results
INSTALL = nbformat.read(CHAPTERS[0], as_version=4).cells[1].source
MAX_LINES = 25
MAX_COLUMNS = 78  # what a page shows
MAX_WORDS = 3_200
MAX_WORDS_IN_ALL = 45_000
MAX_VISIBLE = 3_500  # lines of code on the pages, without those folded and blank ones


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def chapter(request: pytest.FixtureRequest) -> nbformat.NotebookNode:
    return nbformat.read(request.param, as_version=4)


def code_cells(chapter: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in chapter.cells if cell.cell_type == "code"]


def tags(cell: nbformat.NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


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


def test_programs_of_chapters_are_budgeted():
    """`book.executed` counts them as a chapter runs; two thirds of a chapter's time were compiling once."""
    budget = tomllib.loads((ROOT / "book/programs.toml").read_text())
    assert sorted(budget) == sorted(path.stem for path in NOTEBOOKS)
    assert max(budget.values()) <= 70 and sum(budget.values()) <= 620


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


def markdown(chapter: nbformat.NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in chapter.cells if cell.cell_type == "markdown")


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
    assert f"widebnn @ git+{url}" in INSTALL
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
