"""Finds neighbouring layers of which one waits for memory while the other one computes.

Run one after the other, each takes the time of its own busiest resource. Run together, in half of
every on-chip memory each, they take that of the sums.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from vitral.compiler.schedule.geometry import blocks_of
from vitral.compiler.schedule.layer_plan import Tiled
from vitral.compiler.schedule.order import merged_order, steps_needed
from vitral.compiler.schedule.regions import Region, region_of
from vitral.compiler.schedule.traffic import Traffic, traffic_of
from vitral.compiler.schedule.unroll import Placement
from vitral.config import CoreConfig
from vitral.errors import CompileError, ConfigError

__all__ = ["choose_pairs", "half_of"]

_LEAST_GAIN = 2000
"""Cycles below which a pair is not worth its risks."""

Retile = Callable[[Tiled, CoreConfig], Tiled]


@dataclass(frozen=True)
class _Candidate:
    gain: int
    number: int


def half_of(config: CoreConfig) -> CoreConfig | None:
    """The core with half of each buffer; None when they are too small."""
    try:
        return replace(
            config,
            inp_buffer=config.inp_buffer // 2,
            wgt_buffer=config.wgt_buffer // 2,
            acc_buffer=config.acc_buffer // 2,
        )
    except ConfigError:
        return None


def choose_pairs(
    tiled: Sequence[Tiled], config: CoreConfig, retile: Retile, regions: Mapping[str, Region]
) -> dict[int, tuple[Tiled, Tiled]]:
    """Number of the first layer of each pair, and both layers in half of the memories.

    `retile` gives a layer the best tiling for a core; `regions` place values inside others.
    """
    half = half_of(config)
    if half is None:
        return {}
    whole = [traffic_of(layer.steps(0, Placement()), layer.geometry, config) for layer in tiled]
    candidates = [
        _Candidate(_gain(whole[n], whole[n + 1]), n)
        for n in range(len(tiled) - 1)
        if _may_join(tiled[n], tiled[n + 1], config)
    ]
    pairs: dict[int, tuple[Tiled, Tiled]] = {}
    for candidate in sorted(candidates, key=lambda c: (-c.gain, c.number)):
        n = candidate.number
        if candidate.gain < _LEAST_GAIN or {n - 1, n, n + 1} & pairs.keys():
            continue
        try:
            pair = retile(tiled[n], half), retile(tiled[n + 1], half)
        except CompileError:
            continue
        apart = whole[n].longest + whole[n + 1].longest
        if _joined_cycles(pair, half, regions) + _LEAST_GAIN <= apart:
            pairs[n] = pair
    return pairs


def _gain(first: Traffic, second: Traffic) -> int:
    """What two layers would gain if they overlapped completely."""
    return first.longest + second.longest - (first + second).longest


def _may_join(first: Tiled, second: Tiled, config: CoreConfig) -> bool:
    """Whether the parameters of both fit the halves of their memory."""
    blocks = max(blocks_of(t.layer.out_shape[1], config.block) for t in (first, second))
    return blocks <= config.layout.param_depth // 2


def _joined_cycles(
    pair: tuple[Tiled, Tiled], half: CoreConfig, regions: Mapping[str, Region]
) -> int:
    """Cycles of two joined layers: the first one's start, both together, the second one's end."""
    steps = [layer.steps(0, Placement()) for layer in pair]
    sources = [region_of(regions, source) for source in pair[1].layer.sources]
    needed = steps_needed(region_of(regions, pair[0].layer.result), steps[0], sources, steps[1])
    order = list(merged_order(steps[0], needed))
    begin = order.index((1, 0))
    end = order.index((0, len(steps[0]) - 1)) + 1
    return sum(
        sum(
            (
                traffic_of(
                    [steps[which][n] for w, n in part if w == which], pair[which].geometry, half
                )
                for which in (0, 1)
            ),
            Traffic(0, 0, 0),
        ).longest
        for part in (order[:begin], order[begin:end], order[end:])
    )
