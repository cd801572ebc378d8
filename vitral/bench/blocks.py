"""Multipliers and memory blocks that a core takes on Xilinx 7-series devices, read off its Verilog.

They follow by rule from the operands of multiplications and the shapes of memories, in a second and
without a synthesis tool. `benchmarks/area.py` has yosys map the whole core, LUTs and all.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["CoreBlocks", "core_blocks", "dsp_blocks", "half_ram_blocks", "modules_of"]

DSP_BITS = (24, 17)
"""Unsigned operands of a DSP48E1; signed ones have a bit more."""

RAM_SHAPES = ((36, 9), (18, 10), (9, 11))
"""Width and log2 of the depth of half a BRAM36 with one read and one write port."""

RAM_BYTE = 9
"""Bits of a memory block that are written together."""

LEAST_DEPTH = 128
"""Memories with fewer rows, and those read in the cycle of their address, are made of LUTs."""

_MODULE = re.compile(r"^module (\\\S+ |\w+)\(.*?^endmodule\n", re.M | re.S)
_WIDTH = re.compile(r"^  (?:wire|reg|input|output) (?:\[(\d+):0\] )?(\\\S+|\w+)", re.M)
_PRODUCT = re.compile(r"^  assign (\\\S+) +=(.*?) \* (.*);$", re.M)
_OPERAND = re.compile(r"(\\\S+|\w+) ?(?:\[(\d+)(?::(\d+))?\])?$")
_MEMORY = re.compile(r"^  reg (?:\[(\d+):0\] )?(\w+) \[(\d+):0\];", re.M)


@dataclass(frozen=True)
class CoreBlocks:
    """DSP48E1 and halves of BRAM36 by the name of the module, where there are any."""

    dsp: dict[str, int]
    half_bram: dict[str, int]

    @property
    def total_dsp(self) -> int:
        return sum(self.dsp.values())

    @property
    def total_bram(self) -> int:
        """BRAM36, the last one perhaps half used."""
        return (sum(self.half_bram.values()) + 1) // 2


def modules_of(verilog: str) -> dict[str, str]:
    """The text of every module by its name."""
    return {m[1].strip().lstrip("\\"): m[0] for m in _MODULE.finditer(verilog)}


def core_blocks(verilog: str) -> CoreBlocks:
    """What the Verilog of `vitral.hw.verilog.emit` takes."""
    dsp, half_bram = {}, {}
    for name, text in modules_of(verilog).items():
        multipliers = sum(dsp_blocks(*widths) for widths in _products(text))
        blocks = sum(half_ram_blocks(*shape) for shape in _memories(text))
        if multipliers:
            dsp[name] = multipliers
        if blocks:
            half_bram[name] = blocks
    return CoreBlocks(dsp, half_bram)


def dsp_blocks(first: int, second: int, result: int) -> int:
    """DSP48E1 for a product of unsigned operands of so many bits, its low `result` bits wanted.

    Operands are cut into what one block takes; partial products beyond the result are not made.
    """
    long, short = max(first, second), min(first, second)
    return sum(
        1
        for low in range(0, long, DSP_BITS[0])
        for high in range(0, short, DSP_BITS[1])
        if low + high < result
    )


def half_ram_blocks(width: int, depth: int, granule: int) -> int:
    """Halves of BRAM36 for a memory of `depth` rows, `granule` bits of them written at once."""
    granules, bits = width // granule, max(depth - 1, 1).bit_length()
    counts = []
    for columns, rows in RAM_SHAPES:
        used = granules * -(-granule // RAM_BYTE) * RAM_BYTE
        counts.append(-(-used // columns) * 2 ** max(0, bits - rows))
    return min(counts)


def _products(text: str) -> Iterator[tuple[int, int, int]]:
    """Bits of the operands, without their signs, and of the result that is used."""
    widths = {name: int(high or 0) + 1 for high, name in _WIDTH.findall(text)}
    seen = set()
    for result, first, second in _PRODUCT.findall(text):
        operands = [_operand(part, widths) for part in (first, second)]
        if all(operands) and (first, second) not in seen:
            seen.add((first, second))
            yield operands[0], operands[1], _used(result, text, widths)


def _operand(text: str, widths: dict[str, int]) -> int:
    """Bits of an operand; 0 for a constant."""
    signed = "$signed" in text
    text = text.strip().removeprefix("$signed(").removesuffix(")")
    if text.startswith("{"):
        return sum(_operand(part, widths) or 1 for part in text.strip("{} ").split(","))
    if "'" in text:
        return 0
    match = _OPERAND.match(text)
    assert match, f"an operand that is a signal: {text}"
    name, high, low = match.groups()
    if high is None:
        return widths[name] - signed
    return int(high) - int(low or high) + 1 - signed


def _used(result: str, text: str, widths: dict[str, int]) -> int:
    """Bits of a result up to the highest that something reads."""
    slices = re.findall(re.escape(result) + r" (?:\[(\d+)(?::\d+)?\])?", text)
    highs = [int(high) + 1 for high in slices if high]
    # One is its declaration, one its assignment.
    whole = sum(1 for high in slices if not high) > 2
    return widths[result] if whole or not highs else max(highs)


def _memories(text: str) -> Iterator[tuple[int, int, int]]:
    """Width, depth and bits written at once of the memories that blocks are taken for."""
    for high, name, last in _MEMORY.findall(text):
        width, depth = int(high or 0) + 1, int(last) + 1
        registered = re.search(rf"_\d+_ <= {name}\[", text)
        writes = len(re.findall(rf"^ +{name}\[[^\n]*\] <= ", text, re.M))
        if registered and depth >= LEAST_DEPTH:
            yield width, depth, width // writes
