"""Experiments: parts that are the whole, names by which workers find them, claims that are registered."""

import dataclasses

import pytest
from study.grids import CONFIG, Grid, declared, registry, rows_of

from widebnn.study import Results, Rows, experiment


def test_parts_make_the_whole():
    one = declared(parts=[("widths", "steps"), "taus"])
    parts = one.parts(Grid())
    assert len(parts) == 6 and len(set(parts)) == 6
    assert parts[1] == Grid(widths=(2,), steps=(30,), taus=(1.0,))
    joined = [tuple(row.items()) for part in parts for row in one(part)]
    assert len(joined) == 12 and set(joined) == {tuple(row.items()) for row in one(Grid())}


def test_a_single_field_needs_no_list():
    assert declared(parts="taus").parts(CONFIG) == [CONFIG]
    assert len(declared(parts="taus").parts(Grid())) == 2


def test_an_experiment_that_is_not_split_is_one_part():
    assert declared(parts=()).parts(Grid()) == [Grid()]


def test_it_is_called_like_its_function_and_yields_as_it_goes():
    seen = []

    @experiment("watched", scales={"smoke": CONFIG})
    def watched(config):
        """What is seen."""
        for row in rows_of(config):
            seen.append(row)
            yield row

    assert (watched.name, watched.__name__, watched.__module__) == ("watched", "watched", __name__)
    assert watched.__qualname__.endswith("watched") and watched.__doc__ == "What is seen."
    rows = watched(CONFIG)
    assert not seen
    assert [next(rows)] == seen


def test_a_claim_sees_rows_or_all_results():
    one = declared()

    @one.claim("H-F2", claim="Seen.", rule="As given.")
    def of_rows(rows):
        seen.append(rows)
        return []

    @one.claim("H-F3", claim="Seen.", rule="As given.")
    def of_results(results):
        seen.append(results)
        return []

    seen = []
    results = Results(Rows([{"width": 1}]), {"seed": 0}, {})
    assert [claim.id for claim in one.claims] == ["H-F1", "H-F2", "H-F3"]
    for claim in one.claims:
        assert isinstance(claim.summarise(results), list) and claim.experiment == "grid"
    assert seen == [results.rows, results]


def test_a_registry_has_names_and_rows_once():
    one = declared()
    assert registry(one).find("H-F1") is registry(one).find("grid") is one
    with pytest.raises(ValueError, match="names of their own"):
        registry(one, declared())
    one.claims.append(dataclasses.replace(one.claims[0], id="H-F2"))
    with pytest.raises(ValueError, match=r"they differ in \['H-F2'\]"):
        type(registry(one))([one], ["H-F1"], lambda: None)
