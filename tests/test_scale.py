"""The scale is the one that is set, or else follows the device."""

import jax
import pytest

import widebnn as wb


@pytest.mark.parametrize(("backend", "scale"), [("cpu", "smoke"), ("gpu", "colab")])
def test_an_unset_scale_follows_the_device(backend, scale, monkeypatch):
    monkeypatch.delenv("WIDEBNN_SCALE", raising=False)
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    assert wb.current_scale() == scale
    assert wb.at_scale(smoke=1, laptop=2, paper=3) == {"smoke": 1, "colab": 2}[scale]


def test_a_scale_that_is_set_wins(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    for scale in wb.scale.SCALES:
        monkeypatch.setenv("WIDEBNN_SCALE", scale)
        assert wb.current_scale() == scale


def test_the_larger_of_the_smaller_scales_is_chosen(monkeypatch):
    monkeypatch.setenv("WIDEBNN_SCALE", "colab")
    assert wb.at_scale(smoke=1, paper=4) == 1
    assert wb.at_scale(smoke=1, laptop=2, paper=4) == 2
    assert wb.at_scale(smoke=1, colab=3) == 3
