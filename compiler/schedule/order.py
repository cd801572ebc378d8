"""The order in which the steps of all layers run, with those of joined layers merged."""

from collections.abc import Iterator, Sequence

from vitral.compiler.schedule.layer_plan import LayerPlan
from vitral.compiler.schedule.regions import Region
from vitral.compiler.schedule.steps import InputChunk, Step

__all__ = ["merged_order", "order_steps", "steps_needed"]

_LAG_CYCLES = 1200  # from the end of a step's products until a LOAD can read what it stored


def order_steps(plans: Sequence[LayerPlan]) -> list[tuple[int, int]]:
    """(layer, number of its step) in the order of execution."""
    order: list[tuple[int, int]] = []
    for number, plan in enumerate(plans):
        if plan.joined:
            continue
        second = plans[number + 1] if number + 1 < len(plans) else None
        if second is None or not second.joined:
            order += [(number, step) for step in range(len(plan.steps))]
            continue
        needed = steps_needed(plan.writes, plan.steps, second.reads, second.steps)
        order += [
            (number + is_second, step) for is_second, step in merged_order(plan.steps, needed)
        ]
    return order


def steps_needed(
    result: Region, first: Sequence[Step], sources: Sequence[Region], second: Sequence[Step]
) -> list[int]:
    """For each step of the second layer the last step of the first one whose result it reads, or
    an earlier one of its own needs; -1 when there is none."""
    stored: dict[tuple[int, int, int], int] = {}
    for number, step in enumerate(first):
        for block in range(*_bounds(step.stored)):
            for row in range(*_bounds(step.tile.rows)):
                stored[step.tile.batch, result.first + block, row] = number
    needed, latest = [], -1
    for step in second:
        for chunk in step.inputs:
            source = sources[chunk.source]
            if step.load_input and source.root == result.root:
                places = _places(chunk, source.first)
                latest = max([latest, *(stored.get(place, -1) for place in places)])
        needed.append(latest)
    return needed


def _places(chunk: InputChunk, first: int) -> Iterator[tuple[int, int, int]]:
    """Sample, channel block and row of the real input that a chunk holds, whose blocks count from
    `first` on."""
    for block in range(*_bounds(chunk.ins)):
        for row in range(chunk.rows.real):
            yield chunk.batch, first + block, chunk.rows.first + row * chunk.step


def _bounds(run: tuple[int, int]) -> tuple[int, int]:
    return run[0], run[0] + run[1]


def merged_order(first: Sequence[Step], needed: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(0 or 1 for the layer, step): the second layer's spread over the first's, each late enough
    that what it reads has been stored when it could be loaded."""
    lag = 2 + _LAG_CYCLES // _cycles(first)
    start = needed[0] + lag
    done = 0
    for number in range(len(first)):
        yield 0, number
        wanted = -(-(number + 1 - start) * len(needed) // len(first))
        while done < wanted and needed[done] + lag <= number:
            yield 1, done
            done += 1
    for number in range(done, len(needed)):
        yield 1, number


def _cycles(steps: Sequence[Step]) -> int:
    """About the cycles of a step; too few is safe."""
    return max(1, sum(step.tile.positions * step.blocks for step in steps) // len(steps))
