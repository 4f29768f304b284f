"""The speed of a device, and forecasts that rest on it."""

import pytest
from study.grids import CONFIG, declared, registry, rows_of

from widebnn.study import Cost, device, save, speed
from widebnn.study.forecast import _kind
from widebnn.study.speed import CARDS, T4, Speed, measured_speed


def times(monkeypatch, narrow, wide):
    monkeypatch.setattr(speed, "_seconds_per_step", lambda n, width, num_steps: narrow if n == 8 else wide)


def test_a_narrow_step_is_latency_and_the_rest_of_a_wide_one_arithmetic(monkeypatch):
    times(monkeypatch, 0.001, 0.003)
    found = measured_speed()
    assert found.latency == 0.001 and found.device == device()
    assert found.flops == pytest.approx((4 * 256**2 * 4_096 + 256**3 / 3) / 0.002)


def test_scatter_makes_no_device_infinitely_fast(monkeypatch):
    times(monkeypatch, 0.0031, 0.0030)
    assert measured_speed().flops == pytest.approx((4 * 256**2 * 4_096 + 256**3 / 3) / 0.0003)


def test_steps_are_timed():
    assert 0 < speed._seconds_per_step(4, 4, 5) < 10


CONFIGS = {"smoke": CONFIG, "laptop": CONFIG, "colab": CONFIG}


def of_device(cost, flops=None):
    """Experiments of some cost, whose results tell the speed of the device or do not."""
    return declared(scales=CONFIGS, cost=lambda c: cost, flops=flops)


@pytest.fixture
def folder(tmp_path):
    """A run of 30 s, 10 s of which took compiling."""
    save(tmp_path / "grid_laptop.json", CONFIG, rows_of(CONFIG), 30.0, 10.0)
    return tmp_path


COST = Cost(2.0, steps=1_000, floats=500)
TELLING = registry(of_device(COST, flops=lambda results: 1e9 * len(results.rows) / 4))


def test_another_device_has_its_own_arithmetic_and_its_own_latency(folder):
    card = Speed("a card", flops=10e9, latency=0.01, basis="a guess")
    seconds, compiles, peak, basis = TELLING.forecast("grid", "colab", folder, speed=card)
    assert seconds == pytest.approx(10 + 20 / 10 + 1_000 * 0.01) and compiles == 10  # on the same host
    assert peak == {"device": 2_000}
    assert basis.startswith("an estimate from 30 s on ") and basis.endswith("; a guess")
    assert "10 s to compile 2 parts, measured there" in basis
    assert "arithmetic 10 times as fast, 10 s to start steps" in basis
    assert "not measured on this card" in TELLING.forecast("grid", "colab", folder, speed=T4).basis


def test_the_same_device_needs_no_speed(folder):
    here = Speed(device(), flops=1.0, latency=1.0, basis="")
    for scale in ("laptop", "colab"):
        with_speed = TELLING.forecast("grid", scale, folder, speed=here)
        assert with_speed == TELLING.forecast("grid", scale, folder)
        assert with_speed.seconds == pytest.approx(30)


def test_what_the_host_computes_is_as_slow_with_any_card(folder):
    found = registry(of_device(Cost(2.0))).forecast("grid", "colab", folder, speed=T4)
    assert found.seconds == pytest.approx(30) and "as the host computes it there too" in found.basis


def test_without_a_speed_on_record_nothing_is_forecast_for_another_device(folder):
    silent = registry(of_device(COST))
    assert silent.forecast("grid", "colab", folder, speed=T4) is None
    assert silent.forecast("grid", "colab", folder) is not None


def test_joined_devices_are_of_a_kind_whatever_their_cores():
    joined = "cpu, x86_64, 1 core; cpu, x86_64, 2 cores"
    assert _kind(joined) == _kind("cpu, x86_64, 8 cores") == "cpu, x86_64"
    assert _kind(f"{joined}; Tesla T4") == "cpu, x86_64; Tesla T4"


def test_cards_have_the_float32_rates_of_their_data_sheets_in_that_order():
    assert [f"{4e-12 * card.flops:.1f}" for card in CARDS] == ["8.1", "19.5", "66.9"]
    for card in CARDS:
        assert f"{4e-12 * card.flops:g} TFLOP/s" in card.basis and card.latency == T4.latency
