"""`kill -9` at random moments: what is left in the end is what an uninterrupted run leaves, bit for bit."""

import multiprocessing
import random
import secrets
import signal
import time
from pathlib import Path

import pytest

NUM_KILLS = 20
RUN = "import runpy, sys; sys.argv = argv; runpy.run_path(argv[0], run_name='__main__')"
SECONDS = 400  # for all of it, lest a machine that is too slow to finish a run goes on for ever


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
        uninterrupted.join(SECONDS)
        duration = time.perf_counter() - begin
    assert uninterrupted.exitcode == 0
    expected = (tmp_path / "expected").read_bytes()

    begin = time.perf_counter()
    kills = after_a_checkpoint = finished = 0
    while kills < NUM_KILLS or not finished:
        path, result = tmp_path / f"run-{finished}", tmp_path / f"result-{finished}"
        process = start(path, result)
        process.join(moments.uniform(0, duration) if kills < NUM_KILLS else SECONDS)
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
        assert time.perf_counter() - begin < SECONDS
    print(
        f"{kills} kills, {after_a_checkpoint} of them after a checkpoint; "
        f"{finished} runs finished, {duration:.1f} s each without kills"
    )
    assert kills == NUM_KILLS
    assert after_a_checkpoint >= NUM_KILLS / 2
