"""The package as a stranger gets it: a wheel in an empty environment, with the core dependencies alone."""

import email
import json
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def canonical(requirement: str) -> str:
    """A requirement's package in the form that names are compared in (PEP 503)."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints; its error output in the message where it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (described,) = (name for name in names if name.endswith("METADATA"))
        fields = email.message_from_bytes(archive.read(described))
    packaged = {name for name in names if ".dist-info/" not in name}
    tracked = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
    results = {name.replace("book/", "widebnn/") for name in run(*tracked, "book/results", cwd=ROOT).split()}
    assert results and packaged == set(run(*tracked, "widebnn", cwd=ROOT).split()) | results
    assert "widebnn/py.typed" in packaged
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert fields["License-Expression"] == "MIT"


def needed(requirements: Iterable[str]) -> set[tuple[str, str]]:
    """The installed packages that an installer would bring for requirements, each with an extra or ""."""
    found: set[tuple[str, str]] = set()
    waiting = [(text, "") for text in requirements]
    while waiting:
        text, extra = waiting.pop()
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            new = {(canonical(requirement.name), wanted) for wanted in ("", *requirement.extras)} - found
            found |= new
            waiting += [(line, wanted) for name, wanted in new for line in metadata.requires(name) or []]
    return found


@pytest.mark.slow
def test_wheel_works_with_core_dependencies_alone(wheel, tmp_path):
    """In an environment of links to the packages of this one, which spares their download."""
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    packages = Path(run(python, "-c", "import site; print(*site.getsitepackages())", cwd=tmp_path).strip())
    for name in {name for name, _ in needed(PROJECT["dependencies"])}:
        for file in metadata.files(name):
            if ".." not in file.parts and file.locate().exists():
                (packages / file).parent.mkdir(parents=True, exist_ok=True)
                (packages / file).symlink_to(file.locate())
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", wheel, cwd=tmp_path)
    run(*pip, "check", cwd=tmp_path)
    installed = {
        canonical(package["name"]) for package in json.loads(run(*pip, "list", "--format=json", cwd=tmp_path))
    }

    extras = {canonical(r) for group in PROJECT["optional-dependencies"].values() for r in group}
    assert {canonical(requirement) for requirement in PROJECT["dependencies"]} <= installed
    assert not extras & installed
    # Where it was built lies elsewhere: the import finds the installed package or nothing.
    program = "import widebnn as wb; print(wb.__version__, wb.__file__, wb.results('over_width').name)"
    version, file, name = run(python, "-W", "error", "-I", "-c", program, cwd=tmp_path).split()
    assert (version, name) == (PROJECT["version"], "over_width")
    assert Path(file).is_relative_to(tmp_path)


@pytest.mark.slow
def test_import_leaves_out_what_a_chain_does_not_need():
    program = "import sys, widebnn as wb; print(*sys.modules); wb.plots; assert 'matplotlib' in sys.modules"
    loaded = set(run(sys.executable, "-c", program, cwd=ROOT).split())
    heavy = {"matplotlib", "orbax.checkpoint", "arviz", "sklearn", "pooch", "scipy", "widebnn.tables"}
    assert "widebnn.driver" in loaded and not heavy & loaded


def test_pins_cover_every_dependency():
    pins = (ROOT / "requirements.txt").read_text()
    pinned = {canonical(line) for line in pins.splitlines()}
    extras = {name: group for name, group in PROJECT["optional-dependencies"].items() if name != "bench"}
    groups = [PROJECT["dependencies"], *extras.values()]
    assert {canonical(requirement) for group in groups for requirement in group} <= pinned
    assert all(re.match(r"[\w.-]+==\S+( ; .+)?$", line) for line in pins.splitlines())
    assert "://" not in pins


def test_environments_agree():
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())
    python = (ROOT / ".python-version").read_text().strip()
    assert f"python={python}" in conda["dependencies"]
    assert PROJECT["requires-python"] == f">={python}"
    assert {"pip": ["-r requirements.txt"]} in conda["dependencies"]
