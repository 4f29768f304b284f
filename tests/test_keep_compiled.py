"""Programs are kept on disk within a limit, and taken up by the next process."""

import os
import subprocess
import sys

import jax
import pytest

import widebnn as wb
from widebnn._compile import _cut_back

PROGRAM = """\
import jax, widebnn as wb
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name.rpartition("/")[2]))
print(wb.keep_compiled())
jax.jit(lambda u: u**2 + 1)(2.0)
print(hits.count("cache_hits"), hits.count("cache_misses"))
"""


@pytest.mark.slow
def test_a_second_process_compiles_nothing(tmp_path):
    env = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    env["XDG_CACHE_HOME"] = str(tmp_path)
    ran = [
        subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    (folder, first), (_, second) = (one.stdout.splitlines() for one in ran)
    assert folder == str(tmp_path / "widebnn" / "compiled")
    num_programs = first.removeprefix("0 ")
    assert int(num_programs) > 0 and second == f"{num_programs} 0"


def test_what_was_read_longest_ago_goes_first(tmp_path):
    for age in range(5):
        file = tmp_path / f"{age} days"
        file.write_bytes(bytes(10))
        os.utime(file, (1e9 - 86_400 * age,) * 2)
    _cut_back(tmp_path, 35)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0 days", "1 days", "2 days"]


@pytest.fixture
def settings():
    """JAX's settings are as before after the test."""
    names = (
        "jax_compilation_cache_dir",
        "jax_enable_compilation_cache",
        "jax_persistent_cache_min_compile_time_secs",
    )
    before = {name: getattr(jax.config, name) for name in names}
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def test_nothing_is_kept_where_it_is_switched_off_or_cannot_be(settings, tmp_path):
    before = jax.config.jax_compilation_cache_dir
    (tmp_path / "file").touch()
    assert wb.keep_compiled(tmp_path / "file" / "folder") is None
    jax.config.update("jax_enable_compilation_cache", False)
    assert wb.keep_compiled(tmp_path) is None
    assert jax.config.jax_compilation_cache_dir == before
