"""The queue for a card: order, limits of time and memory, what is stored, resumed and kept apart."""

import jax
import pytest

import widebnn as wb
from book.experiments import __main__, card
from book.experiments.claims import CLAIMS
from book.experiments.registry import EXPERIMENTS


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
    assert calls == [part.experiment for part in parts]  # these take no time
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


@pytest.mark.slow
def test_what_no_other_run_has_runs_at_smoke_scale(tmp_path, monkeypatch):
    """Other parts are those of `test_runs` at this scale."""
    small, kinds = {"widths": (8,), "num_train": (4,)}, {}
    for part in card.queue("smoke"):
        if part.settings != EXPERIMENTS[part.experiment].settings("smoke"):
            of_mixing = part.experiment == "mixing_over_width"
            part = part._replace(settings=part.settings | (small if not of_mixing else {"widths": (16,)}))
            kinds.setdefault(repr((part.experiment, part.settings)), part)
    monkeypatch.setattr(card, "queue", lambda scale: list(kinds.values()))
    said = []
    card.run(tmp_path, 1.0, "smoke", said.append)
    assert len(said) == len(kinds) == 6 and all(" took " in line for line in said)
    held = card.finished(tmp_path, kinds.values())[wb.device()]
    assert all(results.rows and results.provenance["precision"] == "highest" for results in held.values())
