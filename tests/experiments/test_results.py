"""Results files: round trip, provenance, and that nothing stored is lost or mixed up."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from widebnn.experiments import EXPERIMENTS, OVER_WIDTH, config_hash, load, load_or_run, save

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
    assert results.rows == ROWS
    assert results.config == {"experiment": "Config", "width": 3, "steps": [0.1, 0.2]}
    assert results.provenance["seconds"] == 1.3
    assert results.provenance["versions"]["jax"]
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


def test_arrays_come_back_from_netcdf(tmp_path):
    path, rng = tmp_path / "r.json", np.random.default_rng(0)
    rows = [
        {"width": 3, "trace": rng.normal(size=(2, 3))},
        {"width": 4, "trace": np.arange(4, dtype=np.int32)},
    ]
    save(path, Config(), rows, seconds=1.0)
    (file,) = tmp_path.glob("*.nc")
    for found, row in zip(load(path, Config()).rows, rows, strict=True):
        assert found["width"] == row["width"] and found["trace"].dtype == row["trace"].dtype
        np.testing.assert_array_equal(found["trace"], row["trace"])

    content = file.read_bytes()
    file.write_bytes(content[:-8] + bytes(8))
    with pytest.raises(ValueError, match=r"path r-\w+\.nc is damaged"):
        load(path, Config())
    file.unlink()
    with pytest.raises(ValueError, match=r"path r-\w+\.nc does not exist"):
        load(path, Config())


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


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"format": "other"}'])
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


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_results_are_of_the_current_configuration(path):
    experiment, scale = path.stem.rsplit("_", 1)
    assert load(path, EXPERIMENTS[experiment][scale]).rows
    assert json.loads(path.read_text())["provenance"]["commit"]


@pytest.mark.parametrize(
    "path", [p for p in SHIPPED if p.stem.startswith("over_width")], ids=lambda p: p.stem
)
def test_shipped_results_over_width_cover_their_grid(path):
    config = OVER_WIDTH[path.stem.rsplit("_", 1)[1]]
    rows = load(path, config).rows
    grid = {(row["width"], row["sampler"], row["step_size"]) for row in rows}
    assert grid == {(w, s, b) for w in config.widths for s in config.samplers for b in config.step_sizes}
    assert len(rows) == len(grid)


def test_results_are_shipped():
    assert SHIPPED
