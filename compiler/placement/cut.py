"""The cheapest split of a graph between host and accelerator: a minimum cut.

Each operator costs what it costs where it runs; each value that is made on one side and read on the
other costs its copy, once. The cheapest choice over all of them is a cut of least weight in a
network with a node for each operator and two for each value, and is found exactly, joins included.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

__all__ = ["Item", "split"]

_UNIT = 1e-12
"""Seconds in a unit of capacity: integers keep the flow exact."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """An operator to place.

    Parameters
    ----------
    output : str
        The value that it makes.
    inputs : tuple of str
        Values that it reads; those that no item makes are on the host.
    host, accelerator : float
        Seconds on either; infinite where it cannot run.
    """

    output: str
    inputs: tuple[str, ...]
    host: float
    accelerator: float


def split(
    items: Sequence[Item], copies: Mapping[str, float], read_by_host: Sequence[str] = ()
) -> set[str]:
    """Outputs of the items that run on the accelerator at least total cost.

    Parameters
    ----------
    items : sequence of Item
        In any order.
    copies : mapping
        Value to the seconds of moving it, either way.
    read_by_host : sequence of str
        Values that the host needs whatever else reads them.
    """
    import networkx

    net = networkx.DiGraph()
    net.add_nodes_from(["host", "accelerator"])
    made = {item.output for item in items}
    readers: dict[str, list[object]] = {name: ["host"] for name in read_by_host}
    for item in items:
        node = ("op", item.output)
        _edge(net, "host", node, item.accelerator)
        _edge(net, node, "accelerator", item.host)
        for value in dict.fromkeys(item.inputs):
            readers.setdefault(value, []).append(node)
    for value, nodes in readers.items():
        maker: object = ("op", value) if value in made else "host"
        _copy(net, value, maker, nodes, copies[value])
    _, (on_host, _) = networkx.minimum_cut(net, "host", "accelerator")
    return {item.output for item in items if ("op", item.output) not in on_host}


def _copy(net: object, value: str, maker: object, readers: list[object], seconds: float) -> None:
    """One payment when any reader is on the other side than the maker."""
    down, up = ("down", value), ("up", value)
    _edge(net, maker, down, seconds)
    _edge(net, up, maker, seconds)
    for reader in readers:
        _edge(net, down, reader, inf)
        _edge(net, reader, up, inf)


def _edge(net: object, start: object, end: object, seconds: float) -> None:
    """A way that costs `seconds` when `start` is on the host and `end` is not."""
    if start == end:
        return
    if seconds == inf:
        net.add_edge(start, end)  # type: ignore[attr-defined]
        return
    units = round(seconds / _UNIT)
    if net.has_edge(start, end):  # type: ignore[attr-defined]
        units += net[start][end].get("capacity", 0)  # type: ignore[index]
    net.add_edge(start, end, capacity=units)  # type: ignore[attr-defined]
