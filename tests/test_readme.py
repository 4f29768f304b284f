"""The README's quickstart runs as it stands."""

import re
from pathlib import Path

import pytest

import widebnn as wb

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.slow
def test_quickstart(capsys):
    (program,) = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    space: dict = {}
    exec(compile(program, "README.md", "exec"), space)
    draws = space["draws"]
    assert wb.rhat(draws["potential"]) < 1.01
    assert wb.effective_sample_size(draws["potential"]) >= 400
    assert wb.effective_sample_size(draws["prediction"]).min() >= 400
    assert space["accuracy"] > 0.8  # ten classes
    assert re.search(r"test accuracy 0\.\d\d; potential: ESS \d+, R-hat \d\.\d+", capsys.readouterr().out)


def test_local_links_exist():
    for target in re.findall(r"\]\((?!http)([^)]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target
