"""The queue for a card: order, limits of time and memory, what is stored, resumed and kept apart."""

import json
import shutil
from pathlib import Path

import jax
import pytest

import widebnn as wb
from book.experiments import __main__, card
from book.experiments.claims import CLAIMS
from book.experiments.experiment import circumstances
from book.experiments.ledger import ledger
from book.experiments.ledger_page import pages
from book.experiments.registry import EXPERIMENTS
from widebnn.tables import Rows

RESULTS = Path(__file__).parents[2] / "book" / "results"


class Device:
    """A card that lends JAX so much memory."""

    platform, memory = "gpu", 80

    def __init__(self, device_kind="H200", gib=80):
        self.device_kind, self.gib = device_kind, gib

    def memory_stats(self):
        return {"bytes_limit": self.gib * 2**30}


@pytest.fixture
def calls(monkeypatch):
    """Names of experiments that ran, in the place of which one row stands."""
    made = []
    monkeypatch.setattr(card.time, "monotonic", lambda: 0.0)  # on the queue's clock these take no time

    def of(name):
        def function(**settings):
            assert jax.config.jax_default_matmul_precision == "highest"
            made.append(name)
            yield {"settings": len(settings)}

        return function

    for name, experiment in EXPERIMENTS.items():
        monkeypatch.setattr(experiment, "_function", of(name))
        monkeypatch.setattr(experiment, "look_for_data", lambda settings: None)
    return made


@pytest.fixture
def on(monkeypatch):
    """Makes a card the device."""

    def put(*args):
        monkeypatch.setattr(jax, "devices", lambda: [Device(*args)])
        monkeypatch.setattr(jax, "default_backend", lambda: "gpu")

    return put


@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_parts_are_short_and_their_settings_are_those_of_experiments(scale):
    parts = card.queue(scale)
    assert [part.name[0] for part in parts] == sorted(part.name[0] for part in parts)
    assert len({part.name for part in parts}) == len(parts)
    extra = {"moves_all", "equilibrate", "from_prior"}
    for part in parts:
        known = EXPERIMENTS[part.experiment].settings(scale)
        assert part.settings.keys() - known.keys() <= extra and 0 < part.seconds <= 120
        assert set(part.rows) <= CLAIMS.keys()


def test_the_most_valuable_come_first_and_fit_into_the_time(tmp_path, calls, on):
    on()
    parts, said = card.queue(), []
    card.run(tmp_path, 180, say=said.append)
    assert calls == [part.experiment for part in parts]
    card.run(tmp_path, 180, say=said.append)
    assert len(calls) == len(parts) == len(said)  # each once


def test_what_does_not_fit_into_the_time_is_left_for_later(tmp_path, calls, on):
    on()
    said = []
    card.run(tmp_path, 50, say=said.append)
    assert said[0].startswith("A1-1 is left for later: it takes some 115 s of 50 s")
    assert len(calls) == sum(part.seconds <= 50 for part in card.queue())


def test_a_part_that_is_cut_off_is_begun_again_and_no_other(tmp_path, calls, on, monkeypatch):
    on()
    dense = EXPERIMENTS["gain_dense"]._function

    def cut_off(**settings):
        yield {"row": 1}
        raise KeyboardInterrupt

    monkeypatch.setattr(EXPERIMENTS["gain_dense"], "_function", cut_off)
    with pytest.raises(KeyboardInterrupt):
        card.run(tmp_path, 600, say=lambda line: None)
    assert calls == ["gain_over_width"] * 3
    assert sorted(path.name for path in tmp_path.rglob("*.json")) == ["A1-1.json", "A1-2.json", "A1-3.json"]
    monkeypatch.setattr(EXPERIMENTS["gain_dense"], "_function", dense)
    card.run(tmp_path, 600, say=lambda line: None)
    assert len(calls) == len(card.queue()) and calls[3:7] == ["gain_dense"] * 4


def test_another_card_goes_on_and_compares_nothing_with_the_first(tmp_path, calls, on):
    parts = card.queue()
    on("H200")
    for part in parts[:4]:  # A, and the first half of B1
        card._run(part, "paper", tmp_path / card._slug(wb.device()))
    on("H100")
    held = card.finished(tmp_path, parts)
    assert {device: [*of] for device, of in held.items()} == {"H200": ["A1-1", "A1-2", "A1-3", "B1-1"]}
    assert [part.name for part in card.left(parts, held, "H100")][:2] == ["B1-1", "B1-2"]
    assert [part.name for part in card.left(parts, held, "H200")][:2] == ["B1-2", "B2-1"]


def test_results_of_two_devices_in_one_folder_are_refused(tmp_path, calls, on):
    on("H200")
    card.run(tmp_path, 600, say=lambda line: None)
    (tmp_path / "h100").mkdir()
    (tmp_path / "h200" / "A1-1.json").rename(tmp_path / "h100" / "A1-1.json")
    with pytest.raises(ValueError, match=r"h100 must hold results of one device, .*; A1-1\.json is of H200"):
        card.finished(tmp_path, card.queue())


def test_a_card_that_is_too_small_is_refused_or_runs_what_it_can(tmp_path, calls, on):
    on("T4", 4)
    with pytest.raises(ValueError, match=r"nothing that is left can run here: A1 needs 12 GiB .* has 4\.0"):
        card.run(tmp_path, 600)
    assert not calls and not list(tmp_path.iterdir())
    on("L4", 16)
    said = []
    card.run(tmp_path, 600, say=said.append)
    assert [line for line in said if "left out" in line] == [
        f"B2-{i} is left out: B2 needs 24 GiB of a card, of which JAX has 16.0 here" for i in (1, 2)
    ]


def test_without_a_card_there_is_only_the_dry_run(tmp_path, capsys):
    arguments = ["card", "--results", str(tmp_path)]
    assert __main__.main(arguments) == 1
    assert "the device must be a card, or the scale smoke; got cpu" in capsys.readouterr().err
    assert __main__.main([*arguments, "--seconds", "0"]) == 1
    assert "seconds must be above 0; got 0" in capsys.readouterr().err
    assert __main__.main([*arguments, "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(card.queue()) + 2 and lines[-1] == "stored: nothing"
    assert not list(tmp_path.iterdir())


def stand_in(folder, names, device="H200", **changes):
    """Stores what a laptop found as if this card had found it, at the sizes of these parts."""
    for part in (part for part in card.queue() if part.name in names):
        rows = json.loads((RESULTS / f"{part.experiment}_laptop.json").read_text())["rows"]
        at = {
            name: part.settings[name][0]
            for name in ("num_train",)
            if isinstance(part.settings.get(name), tuple)
        }
        if part.experiment.startswith("gain_"):
            (name,) = part.settings["parametrisations"]
            last = max((row for row in rows if row["parametrisation"] == name), key=lambda row: row["step"])
            at |= {"width": part.settings["widths"][0], "step": part.settings["num_steps"]}
            rows = [last | at | changes.get(name, {})]
        elif part.experiment == "mixing_over_width":
            rows = [row for row in rows if "Langevin" in row["sampler"] and row["width"] == 1_024]
            rows = [row | {"width": part.settings["widths"][0]} for row in rows]
        elif part.experiment == "step_cost":
            ((architecture, _, _, num_train, width),) = part.settings["networks"]
            rows = {row["target"]: row for row in rows if row["architecture"] == architecture}.values()
            rows = [row | {"num_train": num_train, "width": width} for row in rows]
        elif part.experiment == "resnet":
            of_batch = [row for row in rows if row["norm"] == "batch"]
            nearest = min(of_batch, key=lambda row: abs(row["tau"] - part.settings["taus"][0]))
            rows = [
                row | {"tau": part.settings["taus"][0]} for row in of_batch if row["tau"] == nearest["tau"]
            ]
        made = {"seconds": 1.0} | circumstances() | {"device": device}
        path = folder / "card" / card._slug(device) / f"{part.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        EXPERIMENTS[part.experiment].store(path, "paper", part.settings, Rows(rows), made)


@pytest.fixture
def shipped(tmp_path):
    """A folder with the results that the rows of the queue have without a card."""
    for name in {part.experiment for part in card.queue()} | {"efficiency"}:
        for path in RESULTS.glob(f"{name}_*.json"):
            shutil.copy(path, tmp_path)
    return tmp_path


def rows_of(folder):
    return {entry.claim.id: entry for entry in ledger(folder)}


def test_rows_judge_by_a_comparison_that_a_card_has_finished(shipped):
    far = {"θ": {"pooled_projections": 1e-4, "pooled_error_projections": 1e-6}}
    far |= {"φ": {"pooled_projections": 4e-3, "pooled_error_projections": 1e-6}}
    before = rows_of(shipped)["H-F7a"]
    stand_in(shipped, ["A1-1"], **far)
    half = rows_of(shipped)["H-F7a"]
    assert half.results.scale == "laptop" and half.verdict == before.verdict != "reproduced"
    stand_in(shipped, ["A1-2", "A1-3"], **far)
    found = rows_of(shipped)
    by_card = found["H-F7a"]
    assert by_card.verdict == "reproduced" and by_card.results.provenance["device"] == "H200"
    assert [finding.what for finding in by_card.deciding] == ["ESS of projections, φ ÷ θ, width 1,024"]
    assert by_card.deciding[0].value == pytest.approx(40)
    assert found["H-F7d"].results.scale == found["H-F8a"].results.scale == "laptop"
    page = pages([by_card, found["H-F8a"]])["-hron2022"]
    section, other = page.split("\n## ")[1:]
    assert "on H200" in section and "Waits for a card" not in section and "Waits for a card" in other


def test_a_comparison_of_two_devices_settles_nothing(shipped):
    stand_in(shipped, ["A1-1"], "H200")
    stand_in(shipped, ["A1-2", "A1-3"], "H100")
    assert rows_of(shipped)["H-F7a"].results.scale == "laptop"


def test_short_runs_on_a_card_are_judged_by_their_steps(shipped):
    steps = {"θ": {"step_size": 0.01}, "φ": {"step_size": 0.08}}
    stand_in(shipped, ["B1-1", "B1-2", "B2-1", "B2-2"], **steps)
    entry = rows_of(shipped)["H-F8a"]
    assert [finding.value for finding in entry.findings] == pytest.approx([8, 8])
    assert entry.verdict == "reproduced"
    assert {*entry.results.settings["num_train"]} == {10_240}


def test_every_row_of_the_queue_can_be_judged_by_a_card(shipped):
    parts = card.queue()
    stand_in(shipped, [part.name for part in parts])
    found = rows_of(shipped)
    for id in {id for part in parts for id in part.rows}:
        assert found[id].results.scale == "paper", id
        assert found[id].findings and found[id].word, id
    timed = [
        finding for finding in found["P-C"].findings if "n = 256" in finding.what and "tuned" in finding.what
    ]
    assert len(timed) == 5  # widths of block C
    assert found["H-F6"].deciding[0].resolved and found["V-F2"].deciding[0].resolved
    assert "Waits for a card" not in "".join(pages([found[id] for id in ("H-F6", "V-F2", "P-F2")]).values())


@pytest.mark.slow
def test_what_no_other_run_has_runs_at_smoke_scale(tmp_path, monkeypatch):
    """A part of each experiment; other parts are those of `test_runs` at this scale."""
    small, kinds = {"widths": (8,), "num_train": (4,)}, {}
    for part in card.queue("smoke"):
        if part.settings != EXPERIMENTS[part.experiment].settings("smoke"):
            of_mixing = part.experiment == "mixing_over_width"
            part = part._replace(settings=part.settings | (small if not of_mixing else {"widths": (16,)}))
            kinds.setdefault(part.experiment, part)
    monkeypatch.setattr(card, "queue", lambda scale: list(kinds.values()))
    said = []
    card.run(tmp_path, 1.0, "smoke", said.append)
    assert len(said) == len(kinds) > 2 and all(" took " in line for line in said)
    held = card.finished(tmp_path, kinds.values())[wb.device()]
    assert all(results.rows and results.provenance["precision"] == "highest" for results in held.values())
