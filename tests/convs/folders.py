"""A compiled layer as a folder of raw files, for benches that know nothing of the compiler."""

import numpy as np
import numpy.typing as npt

from convs.exact import run_exact
from convs.programs import compile_layers, pack
from vitral.compiler.schedule.layer import ConvLayer
from vitral.config import CoreConfig
from vitral.isa import Load, Memory
from vitral.program import ProgramFolder, Region

__all__ = ["layer_folder"]

_NAMES = {Memory.WGT: "WGT", Memory.UOP: "UOP", Memory.PARAM: "PARAM"}


def layer_folder(
    layer: ConvLayer, config: CoreConfig, x: npt.NDArray[np.int8], name: str = "conv"
) -> ProgramFolder:
    """The program of one layer with input `x` (N, C, H, W) and its exact result.

    `save` writes it. Its result must have no missing samples: N a multiple of `config.batch`.
    """
    assert layer.out_shape[0] % config.batch == 0, "missing samples have no defined result"
    compiled = compile_layers([layer], config)
    launch, arena, segment = compiled.launch, compiled.arena, compiled.segment
    base = launch.limit_low
    regions = [Region("INSN", launch.insn_base, arena.image[segment.insn_offset].tobytes())]
    for memory, key in _NAMES.items():
        loads = (i for i in compiled.instructions if isinstance(i, Load) and i.memory is memory)
        first = min(insn.dram_base for insn in loads if insn.x_size)
        offset = first * getattr(config.layout, f"{memory.name.lower()}_bytes")
        regions.append(Region(key, base + offset, arena.image[offset].tobytes()))
    (source,), (result,) = segment.inputs, segment.outputs
    regions.append(Region("INP", base + source.offset, pack(x, source, config)))
    expected = pack(run_exact([layer], {layer.source: x})[layer.result], result, config)
    regions.append(Region("OUT", base + result.offset, bytes(len(expected))))
    return ProgramFolder(name, config, launch, tuple(regions), expected)
