"""`kill -9` at random moments: what is left in the end is what an uninterrupted run leaves, bit for bit."""

import os
import random
import secrets
import subprocess
import sys
import time
from pathlib import Path

import pytest

NUM_KILLS, MOST_KILLS = 6, 100
"""Of runs that had a checkpoint, and of all: on a machine that is busy meanwhile, few have."""


@pytest.mark.nightly
def test_kill_minus_nine_at_random_moments(tmp_path):
    print(f"seed of the moments: {(seed := secrets.randbits(32))}")  # another each time, to draw them again
    moments, script = random.Random(seed), Path(__file__).with_name("killed_run.py")
    environment = os.environ | {"PYTHONPATH": str(script.parents[1])}

    def run(path, seconds=None):
        """Whether it came to its end before it was killed."""
        process = subprocess.Popen([sys.executable, script, path, f"{path}.result"], env=environment)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return False
        assert status == 0, "the run ended in an error of its own"
        return True

    for name in ("first", "expected"):  # the first one fills the compiler's cache
        begin = time.perf_counter()
        assert run(tmp_path / name)
        duration = time.perf_counter() - begin
    expected = (tmp_path / "expected.result").read_bytes()

    kills = after_a_checkpoint = finished = 0
    while after_a_checkpoint < NUM_KILLS or not finished:
        assert kills < MOST_KILLS
        path = tmp_path / f"run-{finished}"
        is_last = after_a_checkpoint >= NUM_KILLS
        if run(path, None if is_last else moments.uniform(0, duration)):
            assert Path(f"{path}.result").read_bytes() == expected, f"the bits differ after {kills} kills"
            finished += 1
        else:
            kills += 1
            after_a_checkpoint += path.exists()
    print(f"{kills} kills, {after_a_checkpoint} after a checkpoint; {finished} runs of {duration:.1f} s")
