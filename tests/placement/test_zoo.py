"""Automatic placement of whole networks: never slower by the model than either forced one."""

import pytest

from vitral.compiler.assemble import assemble
from vitral.compiler.ir import Graph
from vitral.compiler.pipeline import import_model, lower
from vitral.compiler.placement.auto import (
    DEFAULT_CLOCK_MHZ,
    Rates,
    estimate,
    on_host,
    place_graph,
)
from vitral.compiler.placement.costs import default_table
from vitral.config import CoreConfig
from vitral.runtime.module import Module
from vitral.zoo import NETWORKS, build

SMALL = ("ds-cnn",)
WHOLE = [name for name in NETWORKS if not name[1:].isdigit()]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in SMALL else (pytest.mark.slow,)) for name in WHOLE],
)
def test_never_slower_than_either_side(name: str) -> None:
    graph = lower(import_model(build(name)))
    rates = Rates(default_table(), DEFAULT_CLOCK_MHZ * 1e6)
    built: dict[int, Graph] = {}

    def make(placed: Graph) -> Module:
        module = assemble(placed, CoreConfig(), lambda doing: None)
        built[id(module)] = placed
        return module

    chosen = place_graph(graph, CoreConfig(), "auto", rates, make)
    total = estimate(built[id(chosen)], chosen, rates).total
    for forced in (graph, on_host(graph)):
        assert total <= estimate(forced, make(forced), rates).total
    assert chosen.macs == make(on_host(graph)).macs
