"""The README's quickstart runs as it stands."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.slow
def test_quickstart(capsys):
    (program,) = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    space: dict = {}
    exec(compile(program, "README.md", "exec"), space)
    assert space["draws"].acceptance_rate > 0.1
    assert space["accuracy"] > 0.5  # ten classes
    assert "test accuracy" in capsys.readouterr().out


def test_local_links_exist():
    for target in re.findall(r"\]\((?!http)([^)]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target
