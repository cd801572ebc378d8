"""Joins neighbouring float operators that onnxruntime runs into one step with one session."""

from collections.abc import Sequence
from typing import cast

from vitral.compiler.ir import Graph
from vitral.compiler.place.partition import Group
from vitral.runtime.module import CpuStep

__all__ = ["merge_islands"]

_ONNX = "float.onnx"
_IEEE = {
    "float.add": "Add",
    "float.sub": "Sub",
    "float.mul": "Mul",
    "float.div": "Div",
    "float.neg": "Neg",
    "float.abs": "Abs",
    "float.sqrt": "Sqrt",
}
"""Operators whose float32 results IEEE 754 fixes, so that numpy's and onnxruntime's are equal."""

Steps = Sequence[CpuStep | Group]


def merge_islands(steps: Steps, graph: Graph) -> tuple[CpuStep | Group, ...]:
    """The steps of a plan with each connected region of float operators as one of them.

    A region holds at least one operator that only onnxruntime has, those of numpy beside it that
    give the same bits there, and no path leaves it and comes back. Results are those of the single
    steps; values that only the region reads are no values of the module any more.
    """
    regions = [region for region in _regions(steps) if len(region) > 1]
    if not regions:
        return tuple(steps)
    from vitral.compiler.frontends.onnx.region import region_step

    units: dict[int, CpuStep | Group] = dict(enumerate(steps))
    for region in regions:
        members = [cast(CpuStep, units.pop(number)) for number in region]
        read = {name for step in units.values() for name in step.inputs} | set(graph.outputs)
        units[region[0]] = region_step(members, read, graph.types, _IEEE)
    return tuple(_in_order([units[number] for number in sorted(units)], graph))


def _regions(steps: Steps) -> list[list[int]]:
    """Numbers of the steps of each connected region, in order.

    A step's depth counts the changes from other work to float operators on the longest way to
    it. What has one depth and hangs together can run at once: a way out of it and back would
    pass other work, and its end would be deeper.
    """
    made = {name: n for n, step in enumerate(steps) for name in step.outputs}
    depths: list[int] = []
    for step in steps:
        before = [made[name] for name in step.inputs if name in made and steps[made[name]].inputs]
        mine = _is_float(step)
        depths.append(
            max((depths[n] + (mine and not _is_float(steps[n])) for n in before), default=0)
        )
    return _joined(steps, made, depths)


def _joined(steps: Steps, made: dict[str, int], depths: list[int]) -> list[list[int]]:
    """Float steps of one depth that read each other, or are results of one node."""
    region = {n: [n] for n, step in enumerate(steps) if _is_float(step)}
    twins: dict[tuple[object, ...], int] = {}

    def join(a: int, b: int) -> None:
        if region[a] is not region[b]:
            region[a] += region[b]
            for n in region[b]:
                region[n] = region[a]

    for number in region:
        step = cast(CpuStep, steps[number])
        if step.op == _ONNX:
            join(twins.setdefault((step.attributes["model"], step.inputs), number), number)
        for other in (made[name] for name in step.inputs if name in made):
            if other in region and depths[other] == depths[number]:
                join(other, number)
    found = {id(part): sorted(part) for part in region.values()}
    return [
        part for part in found.values() if any(cast(CpuStep, steps[n]).op == _ONNX for n in part)
    ]


def _is_float(step: CpuStep | Group) -> bool:
    return isinstance(step, CpuStep) and (step.op == _ONNX or step.op in _IEEE)


def _in_order(steps: Steps, graph: Graph) -> list[CpuStep | Group]:
    """Each step as early as its inputs are there, else as they come."""
    known, rest, result = set(graph.inputs), list(steps), []
    while rest:
        ready = next(step for step in rest if known.issuperset(step.inputs))
        rest.remove(ready)
        known.update(ready.outputs)
        result.append(ready)
    return result
