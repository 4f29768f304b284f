"""`kill -9` at random moments: what is left in the end is what an uninterrupted run leaves, bit for bit."""

import multiprocessing
import random
import secrets
import signal
import time
from pathlib import Path

import pytest

NUM_KILLS = 20
MOST_KILLS = 200
"""Until half of `NUM_KILLS` have come after a checkpoint: on a machine that is busy meanwhile, few do."""


@pytest.mark.nightly
def test_kill_minus_nine_at_twenty_random_moments(tmp_path):
    print(
        f"seed of the moments: {(seed := secrets.randbits(32))}"
    )  # another each time, to be drawn again from it
    moments, script = random.Random(seed), Path(__file__).with_name("killed_run.py").read_text()
    # The server imports the package once, starts no JAX and forks a process for every run.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["widebnn"])

    def run(path, result, seconds=None):
        """The exit status of a run that is killed after so many seconds, or never."""
        given = {"path": str(path), "result": str(result), "cache": str(tmp_path / "compiled")}
        process = context.Process(target=exec, args=(script, given))
        process.start()
        process.join(seconds)
        process.kill()  # SIGKILL; nothing happens where it has just ended by itself
        process.join()
        return process.exitcode

    for _ in range(2):  # the first one fills the compiler's cache
        begin = time.perf_counter()
        assert run("", tmp_path / "expected") == 0
        duration = time.perf_counter() - begin
    expected = (tmp_path / "expected").read_bytes()

    kills = after_a_checkpoint = finished = 0
    while (is_killing := min(kills, 2 * after_a_checkpoint) < NUM_KILLS) or not finished:
        assert kills < MOST_KILLS
        path, result = tmp_path / f"run-{finished}", tmp_path / f"result-{finished}"
        status = run(path, result, moments.uniform(0, duration) if is_killing else None)
        if status == -signal.SIGKILL:
            kills += 1
            after_a_checkpoint += any(entry.name.isdecimal() for entry in path.glob("state/*"))
        else:
            assert status == 0, "the run ended in an error of its own"
            assert result.read_bytes() == expected, f"the bits differ after {kills} kills"
            finished += 1
    print(f"{kills} kills, {after_a_checkpoint} after a checkpoint; {finished} runs of {duration:.1f} s")
