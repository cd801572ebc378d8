"""cocotb: a program folder on the core, with a memory that stalls at random."""

import os
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cosim.bench import Bench
from cosim.monitor import watch_bus

from vitral.isa import Cause
from vitral.program import Dram, ProgramFolder


@cocotb.test()
async def runs_with_stalls(dut: Any) -> None:
    program = ProgramFolder.load(Path(os.environ["PROGRAM"]))
    probability, seed = float(os.environ["STALLS"]), int(os.environ["SEED"])
    image = program.dram()
    bench = Bench(dut, image.end)
    broken = watch_bus(dut, program.config)
    await bench.reset()
    bench.memory.write(image.base, image.data.tobytes())
    if probability:
        bench.stall(probability, seed)
    await bench.start(program.launch)
    assert await bench.finish() == (Cause.NONE, 0)
    assert not broken, broken[0]
    result = np.frombuffer(bench.memory.read(image.base, image.data.size), np.uint8).copy()
    assert not program.differences(Dram(image.base, result))
