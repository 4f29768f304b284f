"""The speed of a device, and forecasts that rest on it."""

import dataclasses

import pytest

from widebnn import experiments
from widebnn.experiments import DECLARED, OVER_WIDTH, T4, Results, Speed, measured_speed
from widebnn.study import run as runner
from widebnn.study import speed

from .test_experiment import grid
from .test_runner import CONFIG, declare


def times(monkeypatch, narrow, wide):
    monkeypatch.setattr(speed, "_seconds_per_step", lambda n, width, num_steps: narrow if n == 8 else wide)


def test_a_narrow_step_is_latency_and_the_rest_of_a_wide_one_arithmetic(monkeypatch):
    times(monkeypatch, 0.001, 0.003)
    found = measured_speed()
    assert found.latency == 0.001 and found.device == experiments.device()
    assert found.flops == pytest.approx((4 * 256**2 * 4_096 + 256**3 / 3) / 0.002)


def test_scatter_makes_no_device_infinitely_fast(monkeypatch):
    times(monkeypatch, 0.0031, 0.0030)
    assert measured_speed().flops == pytest.approx((4 * 256**2 * 4_096 + 256**3 / 3) / 0.0003)


def test_steps_are_timed():
    assert 0 < speed._seconds_per_step(4, 4, 5) < 10


def test_speed_on_record_is_that_of_the_widest_steps():
    rows = [
        {"sampler": "pCN", "width": 8, "ms_per_step": 0.1},
        {"sampler": "pCN", "width": 64, "ms_per_step": 1.0},
        {"sampler": "pCN", "width": 64, "ms_per_step": 3.0},
        {"sampler": "Langevin", "width": 64, "ms_per_step": 100.0},
    ]
    found = speed.flops_on_record(Results(rows, {"num_train": 32}, {}))
    assert found == pytest.approx((4 * 32**2 * 64 + 32**3 / 3) / 0.002)


def redeclare(monkeypatch, **changes):
    monkeypatch.setitem(DECLARED, "suprema", dataclasses.replace(DECLARED["suprema"], **changes))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A run of 30 s and the speed of the device that made it, 10⁹ operations a second."""
    monkeypatch.setattr(runner, "SHIPPED", tmp_path)
    declare(monkeypatch, grid, {"smoke": CONFIG, "laptop": CONFIG, "colab": CONFIG})
    redeclare(monkeypatch, effort=lambda c: 2.0, steps=lambda c: 1_000, floats=lambda c: 500)
    experiments.save(tmp_path / "suprema_laptop.json", CONFIG, grid(CONFIG), 30.0)
    config = OVER_WIDTH["smoke"]
    operations = 4 * config.num_train**2 * 512 + config.num_train**3 / 3
    rows = [{"sampler": "pCN", "width": 512, "ms_per_step": operations / 1e9 * 1e3}]
    experiments.save(tmp_path / "over_width_smoke.json", config, rows, 1.0)
    return tmp_path


def foreseen(scale, folder, **options):
    found = experiments.forecast("suprema", scale, folder, **options)
    assert found is not None
    return found


def test_another_device_has_its_own_arithmetic_and_its_own_latency(folder):
    card = Speed("a card", flops=10e9, latency=0.01, basis="a guess")
    seconds, peak, basis = foreseen("colab", folder, speed=card)
    assert seconds == pytest.approx(30 / 10 + 1_000 * 0.01)
    assert peak == {"device": 2_000}
    assert basis.startswith("an estimate from 30 s on ") and basis.endswith("; a guess")
    assert "arithmetic 10 times as fast, 10 s to start steps" in basis
    assert "not measured on this card" in foreseen("colab", folder, speed=T4).basis


def test_the_same_device_needs_no_speed(folder):
    here = Speed(experiments.device(), flops=1.0, latency=1.0, basis="")
    for scale in ("laptop", "colab"):
        with_speed = foreseen(scale, folder, speed=here)
        assert with_speed == experiments.forecast("suprema", scale, folder)
        assert with_speed.seconds == pytest.approx(30)


def test_what_the_host_computes_is_as_slow_with_any_card(folder, monkeypatch):
    redeclare(monkeypatch, steps=None)
    found = foreseen("colab", folder, speed=T4)
    assert found.seconds == pytest.approx(30) and "as the host computes it there too" in found.basis


def test_without_a_speed_on_record_nothing_is_forecast_for_another_device(folder):
    (folder / "over_width_smoke.json").unlink()
    assert experiments.forecast("suprema", "colab", folder, speed=T4) is None
    assert experiments.forecast("suprema", "colab", folder) is not None
