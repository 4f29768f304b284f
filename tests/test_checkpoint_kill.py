"""`kill -9` at random moments: what is left in the end is what an uninterrupted run leaves, bit for bit."""

import contextlib
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

NUM_KILLS, MOST_RUNS = 6, 20


def written(path):
    """When the last checkpoint was."""
    return path.stat().st_mtime_ns if path.exists() else 0


@pytest.mark.nightly
def test_kill_minus_nine_at_random_moments(tmp_path):
    print(f"seed of the moments: {(seed := secrets.randbits(32))}")  # another each time, to draw them again
    moments, script = random.Random(seed), Path(__file__).with_name("killed_run.py")
    environment = os.environ | {"PYTHONPATH": str(script.parents[1])}

    def run(path, seconds=None):
        """Whether it came to its end before it was killed, so long after its first checkpoint."""
        process = subprocess.Popen([sys.executable, script, path, f"{path}.result"], env=environment)
        before = written(path)
        while process.poll() is None and (seconds is None or written(path) == before):
            time.sleep(0.005)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()
        status = process.wait()
        assert status in (0, -signal.SIGKILL), "the run ended in an error of its own"
        return status == 0

    assert run(tmp_path / "expected")
    expected = (tmp_path / "expected.result").read_bytes()
    kills = finished = 0
    while kills < NUM_KILLS or not finished:
        assert finished < MOST_RUNS
        path = tmp_path / f"run-{finished}"
        if run(path, moments.uniform(0, 1) if kills < NUM_KILLS else None):
            assert Path(f"{path}.result").read_bytes() == expected, f"the bits differ after {kills} kills"
            finished += 1
        else:
            kills += 1
    print(f"{kills} kills after a checkpoint; {finished} runs")
