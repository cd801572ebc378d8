"""The verifier's question answered the slow way: every pair of instructions, every element.

Shares nothing with `vitral.verify`: tokens are matched by counting, order is the transitive closure
of a graph, and accesses are sets built one iteration at a time.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from vitral.config import CoreConfig
from vitral.isa import (
    Alu,
    Config,
    Gemm,
    Instruction,
    InstructionSet,
    Load,
    Memory,
    Stage,
    Store,
    Window,
    queue_of,
)
from vitral.program import Dram, Launch
from vitral.verify.effects import element_bytes

__all__ = ["races"]

Access = tuple[set[tuple[str, int]], set[tuple[str, int]]]


def races(
    program: Sequence[Instruction],
    launch: Launch,
    config: CoreConfig,
    dram: Dram,
    uops: np.ndarray | None = None,
) -> set[tuple[int, int]]:
    """Pairs of instructions of two stages that touch one byte or element, a write among them,
    and that no path of queues and tokens orders."""
    after = _closure(program)
    known = np.zeros(config.layout.uop_depth, np.uint32) if uops is None else uops.copy()
    accesses = list(_accesses(program, launch, config, dram, known))
    found = set()
    for one, other in combinations(range(len(program)), 2):
        if other in after[one] or one in after[other]:
            continue
        (reads, writes), (reads2, writes2) = accesses[one], accesses[other]
        if writes & writes2 or writes & reads2 or reads & writes2:
            found.add((one, other))
    return found


def _closure(program: Sequence[Instruction]) -> list[set[int]]:
    """For each instruction all that come after it."""
    edges: dict[int, set[int]] = defaultdict(set)
    last: dict[Stage, int] = {}
    pushes: dict[tuple[int, int], list[int]] = defaultdict(list)
    pops: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, insn in enumerate(program):
        stage = queue_of(insn)
        if stage in last:
            edges[last[stage]].add(index)
        last[stage] = index
        for flag, step in (("prev", -1), ("next", 1)):
            if getattr(insn, f"push_{flag}"):
                pushes[stage, stage + step].append(index)
            if getattr(insn, f"pop_{flag}"):
                pops[stage + step, stage].append(index)
    for channel, takers in pops.items():
        for giver, taker in zip(pushes[channel], takers, strict=False):
            edges[giver].add(taker)
    return [_reachable(edges, index) for index in range(len(program))]


def _reachable(edges: dict[int, set[int]], start: int) -> set[int]:
    found: set[int] = set()
    todo = [start]
    while todo:
        for index in edges[todo.pop()] - found:
            found.add(index)
            todo.append(index)
    return found


def _accesses(
    program: Sequence[Instruction],
    launch: Launch,
    config: CoreConfig,
    dram: Dram,
    uops: np.ndarray,
) -> Iterator[Access]:
    register = 0
    for insn in program:
        match insn:
            case Config(stage=Stage.COMPUTE, register=1, value=register):
                yield set(), set()
            case Load() | Store() if not insn.x_size or not insn.y_size:
                yield set(), set()
            case Load(memory=memory):
                name = "ACC" if memory is Memory.ACC_8BIT else memory.name
                height = insn.y_pad_0 + insn.y_size + insn.y_pad_1
                width = insn.x_pad_0 + insn.x_size + insn.x_pad_1
                if memory is Memory.UOP:
                    _load_uops(uops, insn, launch, dram)
                chip = {(name, insn.sram_base + n) for n in range(height * width)}
                yield _bytes(insn, launch, config), chip
            case Store():
                count = insn.y_size * insn.x_size
                yield (
                    {("ACC", insn.sram_base + n) for n in range(count)},
                    _bytes(insn, launch, config),
                )
            case Gemm() | Window() | Alu():
                yield _loop_access(insn, uops, InstructionSet.of(config), register)
            case _:
                yield set(), set()


def _bytes(insn: Load | Store, launch: Launch, config: CoreConfig) -> set[tuple[str, int]]:
    size = element_bytes(config)[insn.memory]
    base = launch.base(insn.memory)
    return {
        ("DRAM", base + (insn.dram_base + row * insn.x_stride + column) * size + byte)
        for row in range(insn.y_size)
        for column in range(insn.x_size)
        for byte in range(size)
    }


def _load_uops(uops: np.ndarray, insn: Load, launch: Launch, dram: Dram) -> None:
    assert insn.y_size == 1
    assert not insn.x_pad_0
    address = launch.base(Memory.UOP) + 4 * insn.dram_base
    words = np.frombuffer(dram.read(address, 4 * insn.x_size), np.uint32)
    uops[insn.sram_base : insn.sram_base + insn.x_size] = words


def _loop_access(
    insn: Gemm | Window | Alu, uops: np.ndarray, isa: InstructionSet, register: int
) -> Access:
    reads: set[tuple[str, int]] = set()
    writes: set[tuple[str, int]] = set()
    alu = isinstance(insn, Alu)
    for i in range(insn.iter_out):
        for j in range(insn.iter_in):
            for number in range(insn.uop_bgn, insn.uop_end):
                uop = isa.decode_uop(int(uops[number]), alu=alu)
                index = {
                    name: getattr(uop, name)
                    + i * getattr(insn, f"{name}_factor_out", 0)
                    + j * getattr(insn, f"{name}_factor_in", 0)
                    for name in ("dst", "src", "wgt")
                }
                writes.add(("ACC", index["dst"]))
                if alu and not insn.use_imm:
                    reads.add(("ACC", index["src"]))
                elif isinstance(insn, Gemm) and not insn.reset:
                    reads |= {("INP", index["src"]), ("WGT", index["wgt"])}
                elif isinstance(insn, Window):
                    step = 1 + 2 * (register >> 2)
                    reads |= {("INP", index["src"] + n * step) for n in range(1 + register % 4)}
                    reads |= set() if insn.maximum else {("WGT", index["wgt"])}
    return reads, writes
