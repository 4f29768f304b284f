"""`kill -9` at random moments: what is left in the end is what an uninterrupted run leaves, bit for bit."""

import multiprocessing
import random
import secrets
import signal
import time
from pathlib import Path

import pytest

NUM_KILLS = 20
MOST_KILLS = (
    200  # until half of those have come after a checkpoint: on a machine that is busy meanwhile, few do
)
RUN = "import runpy, sys; sys.argv = argv; runpy.run_path(argv[0], run_name='__main__')"


@pytest.mark.nightly
def test_kill_minus_nine_at_twenty_random_moments(tmp_path):
    seed = secrets.randbits(32)  # another one each time; the moments may be drawn again from what is printed
    print(f"seed of the moments: {seed}")
    moments = random.Random(seed)
    # The server imports the package once, starts no JAX and forks a process for every run.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["widebnn"])

    script = Path(__file__).with_name("killed_run.py")

    def start(path: Path | str, result: Path) -> multiprocessing.Process:
        arguments = [str(script), str(path), str(result), str(tmp_path / "compiled")]
        process = context.Process(target=exec, args=(RUN, {"argv": arguments}))
        process.start()
        return process

    for _ in range(2):  # the first one fills the compiler's cache
        begin = time.perf_counter()
        uninterrupted = start("", tmp_path / "expected")
        uninterrupted.join()
        duration = time.perf_counter() - begin
    assert uninterrupted.exitcode == 0
    expected = (tmp_path / "expected").read_bytes()

    kills = after_a_checkpoint = finished = 0
    while (is_killing := min(kills, 2 * after_a_checkpoint) < NUM_KILLS) or not finished:
        assert kills < MOST_KILLS
        path, result = tmp_path / f"run-{finished}", tmp_path / f"result-{finished}"
        process = start(path, result)
        process.join(moments.uniform(0, duration) if is_killing else None)
        process.kill()  # SIGKILL; nothing happens where it has just ended by itself
        process.join()
        if process.exitcode == -signal.SIGKILL:
            kills += 1
            states = path / "state"
            after_a_checkpoint += states.exists() and any(
                entry.name.isdecimal() for entry in states.iterdir()
            )
        else:
            assert process.exitcode == 0, "the run ended in an error of its own"
            assert result.read_bytes() == expected, f"the bits differ after {kills} kills"
            finished += 1
    print(
        f"{kills} kills, {after_a_checkpoint} of them after a checkpoint; "
        f"{finished} runs finished, {duration:.1f} s each without kills"
    )
