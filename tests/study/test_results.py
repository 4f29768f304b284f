"""Results files: round trip, provenance, and that nothing stored is lost or mixed up."""

import dataclasses
import subprocess
from pathlib import Path

import pytest

from widebnn.experiments import EXPERIMENTS
from widebnn.study import Rows, config_hash, load, load_or_run, save
from widebnn.study import results as results_module

SHIPPED = sorted((Path(__file__).parents[2] / "book" / "results").glob("*_*.json"))


@dataclasses.dataclass(frozen=True)
class Config:
    width: int = 3
    steps: tuple[float, ...] = (0.1, 0.2)


ROWS = [{"width": 3, "acceptance": 0.5, "ess": None}]


def test_round_trip(tmp_path):
    path = tmp_path / "r.json"
    save(path, Config(), ROWS, seconds=1.26)
    results = load(path, Config())
    assert results.rows == ROWS and isinstance(results.rows, Rows)
    assert (results.name, results.scale) == ("", "")
    assert results.config == {"experiment": "Config", "width": 3, "steps": [0.1, 0.2]}
    assert results.provenance["seconds"] == 1.3
    assert results.provenance["versions"]["jax"]
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


def test_the_file_names_the_experiment_and_the_scale(tmp_path):
    made = save(tmp_path / "over_width_laptop.json", Config(), iter(ROWS), seconds=130.0)
    assert made == load(tmp_path / "over_width_laptop.json", Config())
    assert (made.name, made.scale) == ("over_width", "laptop")
    assert made.source.startswith("laptop scale, ") and "2.2 min on " in made.source


def git(*arguments, cwd):
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("place", "project", "is_ours"),
    [
        ("widebnn", "widebnn", True),  # a checkout
        ("widebnn", "other", False),  # a copy in another project's root
        ("venv/site-packages/widebnn", "other", False),
        ("venv/site-packages/widebnn", "widebnn", False),  # installed beside a checkout
        ("widebnn", None, False),
    ],
)
def test_the_commit_is_ours_or_none(tmp_path, monkeypatch, place, project, is_ours):
    package = tmp_path / place
    (package / "study").mkdir(parents=True)
    if project:
        (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "{project}"\n')
    git("init", cwd=tmp_path)
    git("commit", "--allow-empty", "-m", "One.", cwd=tmp_path)
    monkeypatch.setattr(results_module, "__file__", str(package / "study" / "results.py"))
    assert (results_module._commit() is not None) == is_ours


def test_without_git_there_is_no_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(results_module, "__file__", str(tmp_path / "widebnn" / "study" / "results.py"))
    assert results_module._commit() is None


def test_a_config_that_was_edited_is_refused(tmp_path):
    path = tmp_path / "edited.json"
    save(path, Config(width=4), [{"width": 4}], 1.0)
    path.write_text(path.read_text().replace('"width": 4,', '"width": 8,', 1))
    assert '"width": 8' in path.read_text()
    with pytest.raises(ValueError, match=r"edited\.json states another config than its hash"):
        load(path, Config(width=4))


def test_the_hash_sees_every_field_and_the_experiment():
    @dataclasses.dataclass(frozen=True)
    class Other:
        width: int = 3
        steps: tuple[float, ...] = (0.1, 0.2)

    hashes = {config_hash(c) for c in (Config(), Config(width=4), Config(steps=(0.1,)), Other())}
    assert len(hashes) == 4
    assert config_hash(Config()) == config_hash(Config(3, (0.1, 0.2)))


def test_load_or_run_runs_once(tmp_path):
    calls = []

    def run(config):
        calls.append(config)
        return ROWS

    for _ in range(2):
        assert load_or_run(tmp_path / "r.json", Config(), run).rows == ROWS
    assert calls == [Config()]


@pytest.mark.parametrize("content", ["{", "[1]", '{"format": "other"}'])
def test_a_foreign_or_damaged_file_is_refused_and_kept(tmp_path, content):
    path = tmp_path / "r.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"r\.json is no results file"):
        load(path, Config())
    with pytest.raises(FileExistsError, match=r"r\.json holds something else"):
        save(path, Config(), ROWS, seconds=1.0)
    assert path.read_text() == content


def test_another_configuration_is_refused_and_kept(tmp_path):
    path = tmp_path / "r.json"
    save(path, Config(), ROWS, seconds=1.0)
    before = path.read_text()
    for attempt in (
        lambda: load(path, Config(width=4)),
        lambda: load_or_run(path, Config(width=4), lambda config: ROWS),
    ):
        with pytest.raises(ValueError, match="another configuration"):
            attempt()
    with pytest.raises(FileExistsError):
        save(path, Config(width=4), ROWS, seconds=1.0)
    assert path.read_text() == before


def test_missing_results_and_configurations_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone\.json does not exist"):
        load(tmp_path / "gone.json", Config())
    with pytest.raises(TypeError, match="config must be an instance of a dataclass"):
        config_hash(Config)


def test_shipped_results_are_of_the_current_configuration():
    assert SHIPPED
    for path in SHIPPED:
        experiment, scale = path.stem.rsplit("_", 1)
        found = load(path, EXPERIMENTS[experiment].scales[scale])
        assert found.rows and found.provenance["commit"]
