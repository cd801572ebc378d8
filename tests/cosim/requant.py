"""cocotb: the requantiser against its definition in exact integers."""

import random
from typing import Any

import cocotb
import numpy as np
from bench.execute import pack, unpack
from bench.requant_vectors import FIELDS, vectors
from cocotb.triggers import RisingEdge
from cosim.bench import Clocked

from vitral.arithmetic import requantize
from vitral.hw.core.requant import LATENCY
from vitral.isa import PARAM_FIELDS, Rounding

ROWS_OF_A_KIND = 400


@cocotb.test()
@cocotb.parametrize(rounding=list(Rounding), stalls=[0.0, 0.5])
async def equals_the_definition(dut: Any, rounding: Rounding, stalls: float) -> None:
    """Random rows, edges and near-ties, with gaps between them; `stalls` holds all stages."""
    rows = vectors(rounding, ROWS_OF_A_KIND, seed=100 + rounding)
    wanted = requantize(**rows, rounding=rounding).astype(np.int8).tolist()
    table = [{name: int(rows[name][n]) for name in FIELDS} for n in range(len(wanted))]
    got = await _run(dut, table, rounding, stalls)
    wrong = [(table[n], got[n], wanted[n]) for n in range(len(wanted)) if got[n] != wanted[n]]
    assert not wrong, f"{len(wrong)} of {len(wanted)} rows differ, the first: {wrong[0]}"


async def _run(
    dut: Any, table: list[dict[str, int]], rounding: Rounding, stalls: float
) -> list[int]:
    """The low 8 bits, signed, of every row."""
    generator = random.Random(9)
    lanes = len(dut.y) // 8
    assert len(table) % lanes == 0
    clock = Clocked(dut)
    dut.enable.value = dut.valid.value = 0
    dut.rounding.value = int(rounding)
    await clock.reset()
    results: list[int] = []
    first = 0
    for _ in range(8 * len(table) + 8 * LATENCY):
        enable, valid = (
            generator.random() >= stalls,
            first < len(table) and generator.random() < 0.7,
        )
        dut.enable.value, dut.valid.value = int(enable), int(valid)
        if valid:
            picked = table[first : first + lanes]
            dut.acc.value = pack([row["acc"] for row in picked], 32)
            dut.params.value = pack([_param(row) for row in picked], 128)
        await RisingEdge(dut.aclk)
        # What the stages hold now belongs to the cycle that ends here.
        if enable and int(dut.out_valid.value):
            results += unpack(int(dut.y.value), 8, lanes)
        first += lanes * (enable and valid)
        if len(results) == len(table):
            break
    return results


def _param(row: dict[str, int]) -> int:
    return sum(field.insert(row[field.name], "PARAM") for field in PARAM_FIELDS)
