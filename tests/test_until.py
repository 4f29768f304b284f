"""Runs that end by themselves, and those that are interrupted: how far, with which bits, in which words."""

import contextlib
import re
import signal
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from widebnn.checkpoints import Snapshot

import widebnn as wb
from widebnn.diagnostics import convergence
from widebnn.driver import _end, _sample
from widebnn.driver._chains import Carry
from widebnn.driver._end import End
from widebnn.samplers import pcn

from .exact import resume
from .exact.resume import assert_same_bits, interrupted
from .exact.streams import autoregressive, summarised

TARGET = wb.targets.from_potential(lambda u: jnp.sum(jnp.cosh(u)), jnp.zeros(3))
COLLECT = {"u": lambda _, u: u, "U": wb.potential}  # another function is another program
SLOW, EASY = wb.Until(ess=150, rhat=1.1), wb.Until(ess=2, rhat=3)


def run(**options):
    options = {"num_samples": 2_000, "burn_in": 0, "until": SLOW, "collect": COLLECT} | options
    options = {"progress": False} | options
    return wb.sample(jax.random.key(0), TARGET, pcn(0.5), **options)


def looks(until=10_000):
    """100 and every time a quarter more."""
    look = 100
    while look <= until:
        yield look
        look += look // 4


def reaches(draws, num, until):
    found = [convergence(np.moveaxis(values[:num], 0, 1)) for values in draws.values()]
    return min(f.ess.min() for f in found) >= until.ess and max(f.rhat.max() for f in found) <= until.rhat


@pytest.fixture(scope="module")
def whole():
    """The run that nothing ends."""
    return run(until=None)


MIXED = autoregressive(np.random.default_rng(0), 0.7, (2_000, 4, 3))


def ended(collected, until=SLOW, streamed=(), chunk=50):
    """Where draws (draw, chain, *entry), a hundred in a second, end their run, and with which words.

    They come in chunks as those of `sample` do; `streamed` has functions from a number of draws to a summary.
    """
    num_samples = len(next(iter(collected.values()), MIXED))
    end, num, chunks, stopped = End(until, num_samples), 0, [], None
    while stopped is None:
        more = min(chunk, end.next_look(num) - num)
        if collected:
            chunks.append(({name: values[num : num + more] for name, values in collected.items()}, {}))
        num += more
        summaries = {name: summary(num) for name, summary in dict(streamed).items()}
        carry = Carry(None, None, None, summaries, {}, None)
        stopped = end.reached_by(num, Snapshot(carry, chunks, num / 100), is_interrupted=False)
    return stopped, num, end.told(stopped, num)


def test_a_run_ends_at_the_first_look_at_which_everything_is_reached():
    draws = {"u": MIXED, "square": np.sum(MIXED**2, axis=2)}
    stopped, num, reason = ended(draws, chunk=7)
    assert stopped == "converged" and num == next(num for num in looks() if reaches(draws, num, SLOW))
    assert 100 < num < 2_000, "nothing is tested where the first or the last look decides"
    found = [convergence(np.moveaxis(values[:num], 0, 1)) for values in draws.values()]
    least, worst = min(of.ess.min() for of in found), max(of.rhat.max() for of in found)
    words = f"converged: {num} of 2,000 draws of each chain; least ESS {least:.0f} ("
    assert reason.startswith(words) and f"worst R̂ {worst:.3f} (" in reason


@pytest.mark.slow
def test_a_converged_run_has_its_draws_until_then(monkeypatch, whole):
    """Chunks would be longer than it is to the next look."""
    monkeypatch.setattr(_sample, "CHUNK_SECONDS", 100.0)
    draws = run()
    by_draw = {name: np.moveaxis(values, 1, 0) for name, values in whole.collected.items()}
    first = next(num for num in looks() if reaches(by_draw, num, SLOW))
    assert draws["u"].shape == (4, first, 3) and draws.stats["acceptance_rate"].shape == (4, first)
    assert all(np.array_equal(draws[name], whole[name][:, :first]) for name in whole.collected)
    assert draws.stopped == "converged" and draws.reason.startswith(f"converged: {first} of 2,000 draws")
    assert (whole.stopped, whole.reason) == ("num_samples", "num_samples: 2,000 of 2,000 draws of each chain")
    attributes = draws.to_datatree()["posterior"].attrs
    assert attributes["stopped"] == "converged" and attributes["reason"] == draws.reason


def test_end_of_the_draws_is_a_warning_unless_what_is_wanted_is_there():
    """The last draws are looked at whatever their number."""
    words = (
        r"^the run ended after 130 of 130 draws of each chain without an ESS of 400 and an R̂ of at most 1.01"
        r"; least ESS \d+ \(.*\), worst R̂ 1\.\d+ \(.*\): give it more draws or seconds, or take a sampler"
    )
    with pytest.warns(wb.ChainWarning, match=words):
        assert ended({"u": MIXED[:130]}, wb.Until())[:2] == ("num_samples", 130)
    assert ended({"u": MIXED[:130]}, EASY)[:2] == ("converged", 100)
    assert ended({"u": MIXED[:60]}, EASY)[:2] == ("converged", 60)


def of_stream(values):
    return lambda num: summarised(values[:num]).summary


@pytest.mark.slow
def test_what_is_streamed_is_looked_at_too():
    stopped, num, _ = ended({}, wb.Until(ess=600, rhat=1.1), {"u": of_stream(MIXED)})
    earlier = [look for look in looks() if look < num][-1]
    assert stopped == "converged" and num in looks()
    before, at = (summarised(MIXED[:look]).effective_sample_size.min() for look in (earlier, num))
    assert before < 600 <= at


@pytest.mark.slow
def test_entries_that_never_change_are_left_out():
    varied, ones = ended({"u": MIXED}), np.ones((2_000, 4, 1))
    assert ended({"u": np.append(MIXED, ones, axis=2), "one": ones}) == varied
    assert ended({"u": MIXED}, SLOW, {"one": of_stream(ones)}) == varied


def seen(values, until=SLOW):
    """What a first look at draws (draw, chain, *entry) says, and whether it is enough."""
    reached = until.watch().look([{"u": values}], {}, everywhere=True)
    return str(reached), until.is_met(reached)


def test_what_stands_still_is_undefined_or_stands_apart_has_not_converged():
    words, is_met = seen(np.ones((130, 4)))
    assert words.startswith("nothing that is looked at varies") and not is_met
    values = np.random.default_rng(0).normal(size=(400, 4, 2))
    assert seen(values)[1]
    apart = values + np.array([-3, -3, 3, 3])[:, None]
    words, is_met = seen(apart)
    assert not is_met and re.search(r"worst R̂ [1-9]\d*\.\d+ \(u\[\d\]\)", words)
    assert wb.effective_sample_size(np.moveaxis(apart, 0, 1)).min() > SLOW.ess, "each looks well"
    values[5, 2, 1] = np.nan
    assert seen(values) == ("least ESS 0 (u[1]), worst R̂ inf (u[1])", False)


@pytest.mark.slow
def test_chains_that_end_when_they_look_well_have_nearly_what_they_claim():
    """AR(1) series, whose effective samples are known: their mean over 60 runs is no more than 15 % short."""
    rho, rng, true = 0.9, np.random.default_rng(1), []
    for _ in range(60):
        _, num, _ = ended({"x": autoregressive(rng, rho, (6_000, 4))}, wb.Until(400, 1.01), chunk=6_000)
        true.append(4 * num * (1 - rho) / (1 + rho))
    print(f"true effective samples at the end: mean {np.mean(true):.0f}, least {np.min(true):.0f}")
    assert 0.85 * 400 < np.mean(true) < 1.6 * 400
    assert np.min(true) > 0.5 * 400


@pytest.mark.slow
def test_bar_shows_acceptance_and_where_the_chains_stand(capsys, monkeypatch):
    monkeypatch.delenv("TQDM_DISABLE", raising=False)  # which make sets
    monkeypatch.setattr(_sample, "CHUNK_SECONDS", 1e-9)
    run(progress=True)
    shown = capsys.readouterr().err
    assert "sampling, acceptance 0." in shown and ", ESS " in shown and ", R̂ 1." in shown
    assert "/2000" in shown
    run(progress=False)
    assert capsys.readouterr().err == ""


# Seconds.


def test_seconds_end_a_run():
    assert ended({"u": MIXED}, wb.Until(None, None, seconds=1.5), chunk=40)[:2] == ("seconds", 160)
    words = "after 5 of 2,000 .* without an ESS of 400 and .* too few draws"
    with pytest.warns(wb.ChainWarning, match=words):
        assert ended({"u": MIXED}, wb.Until(seconds=0.01), chunk=5)[:2] == ("seconds", 5)


@pytest.mark.slow
def test_seconds_that_are_spent_before_the_first_draw_are_an_error_of_all_calls_together(tmp_path):
    options = {"burn_in": 200, "until": wb.Until(seconds=1e-9), "checkpoint": wb.Checkpoint(tmp_path / "run")}
    for _ in range(2):
        with pytest.raises(TimeoutError, match=r"until.seconds=1e-09 were spent after \d+ of 200 steps"):
            run(**options)


# Checkpoints.


@pytest.mark.slow
def test_resumed_run_ends_at_the_same_draw(tmp_path, monkeypatch):
    """Killed just before the first look, here after eight draws, and just after."""
    monkeypatch.setattr(wb.Until, "first_look", 8)
    options = {"num_samples": 60, "until": wb.Until(ess=25, rhat=1.5)}
    for chunks in (4 + 8, 2):
        interrupted(tmp_path / "run", chunks, **options)
    expected = resume.run(**options)
    assert 8 < expected["noise"].shape[1] < 60 and expected.stopped == "converged"
    for _ in range(2):
        draws = resume.run(tmp_path / "run", **options)
        assert_same_bits(draws, expected)
        assert (draws.stopped, draws.reason) == (expected.stopped, expected.reason)


# Ctrl-C.


@pytest.fixture
def control_c(monkeypatch, sigint):
    """Press Ctrl-C after so many chunks of one step or draw, so many times."""
    monkeypatch.setattr(_sample, "CHUNK_SECONDS", 1e-9)
    update = _sample._Pace.update

    def after(chunks, times=1):
        count = 0

        def pressing(self, *args):
            nonlocal count
            acceptance = update(self, *args)
            if (count := count + 1) == chunks:
                for _ in range(times):
                    signal.raise_signal(signal.SIGINT)
            return acceptance

        monkeypatch.setattr(_sample._Pace, "update", pressing)

    return after


@pytest.mark.slow
def test_an_interrupted_run_returns_its_draws_if_there_are_any_and_the_checkpoint_goes_on(
    tmp_path, control_c
):
    control_c(3)
    with pytest.raises(KeyboardInterrupt, match="interrupted after 3 of 4 steps of burn-in"):
        resume.run(tmp_path / "run")
    control_c(1 + 2)
    with pytest.warns(wb.ChainWarning, match="the run was interrupted after 2 of 6 draws of each chain"):
        draws = resume.run(tmp_path / "run")
    assert draws.stopped == "interrupted" and draws.reason == "interrupted: 2 of 6 draws of each chain"
    assert draws.streamed["a"].count == 2
    control_c(0)
    expected = resume.run()
    assert np.array_equal(draws["noise"], expected["noise"][:, :2])
    assert_same_bits(resume.run(tmp_path / "run"), expected)


def test_second_interrupt_does_not_wait(control_c):
    control_c(3, times=2)
    with pytest.raises(KeyboardInterrupt):
        run(until=None)


def test_other_threads_run_as_well(whole):
    found = []
    thread = threading.Thread(target=lambda: found.append(run(until=None)))
    thread.start()
    thread.join()
    assert_same_bits(found[0], whole)


def test_chains_that_disagree_are_told_though_no_criterion_ends_the_run():
    """Of two chains or more with a hundred draws each: fewer say too little, and warnings are errors here."""
    rng = np.random.default_rng(0)
    good = autoregressive(rng, 0.5, (200, 4, 100)).swapaxes(0, 1)
    bad = good.copy()
    bad[1, :, 7] += 3
    stuck = np.broadcast_to(np.arange(4.0)[:, None], (4, 200))
    undefined = np.where(np.arange(4)[:, None] == 2, np.nan, good[:, :, 0])
    nothing = {}
    for values in (good, bad[:1], bad[:, :99], undefined, good[:, :, 0] > 0, good[:, :, :0], 0 * stuck):
        _end.warn_of_disagreement({"f": values}, nothing)
    for values, words in (
        (bad, r"f\[7\] has an R̂ of 1\.\d+ and an ESS of"),
        (stuck, "R̂ of inf and an ESS of"),
    ):
        with pytest.warns(wb.ChainWarning, match=f"^the chains disagree: .*{words}"):
            _end.warn_of_disagreement({"g": good, "f": values}, nothing)
    for values, words in ((good, None), (bad, r"s\[7\] has an R̂ of")):
        streamed = {"s": summarised(values[:, :, :8].swapaxes(0, 1))}
        with pytest.warns(wb.ChainWarning, match=words) if words else contextlib.nullcontext():
            _end.warn_of_disagreement(nothing, streamed)


@pytest.mark.slow
def test_a_run_that_was_too_short_says_so():
    options = {"num_samples": 100, "collect": {"u": lambda _, u: u}}
    with pytest.warns(wb.ChainWarning, match=r"the chains disagree: u\[\d\] has an R̂ of"):
        wb.sample(jax.random.key(0), TARGET, wb.samplers.rwm(1e-3), burn_in=0, progress=False, **options)
