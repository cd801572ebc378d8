"""A compiled module in words."""

from collections.abc import Iterator

from vitral.runtime.module import CpuStep, Module, Segment, Step, TensorInfo

__all__ = ["describe"]


def describe(module: Module) -> str:
    """Several lines: core, inputs, outputs, steps with their layers, sizes and notices."""
    return "\n".join(_lines(module))


def _lines(module: Module) -> Iterator[str]:
    config = module.config
    yield f"core     {config.batch}x{config.block}x{config.block}, digest {config.digest[:12]}"
    for info in module.inputs:
        yield f"input    {_tensor(info)}"
    for info in module.outputs:
        yield f"output   {_tensor(info)}"
    image = sum(chunk.size for chunk in module.image.values())
    yield f"memory   arena {module.arena_bytes:,} bytes, image {image:,} bytes"
    yield f"work     {module.macs:,} MACs, {_share(module):.1%} on the accelerator"
    for step in module.steps:
        yield from _step_lines(step)
    for notice in module.notices:
        yield f"notice   {notice}"


def _tensor(info: TensorInfo) -> str:
    shape = "x".join(str(size) for size in info.shape) or "scalar"
    text = f"{info.name}: {info.dtype} {shape}"
    if info.scale is not None:
        text += f", scale {info.scale:g}, zero point {info.zero_point}"
    return text


def _share(module: Module) -> float:
    placed = sum(layer.macs for segment in module.segments for layer in segment.layers)
    return placed / module.macs if module.macs else 0.0


def _step_lines(step: Step) -> Iterator[str]:
    if isinstance(step, CpuStep):
        exact = "" if step.exact else " (float, outside the byte promise)"
        yield f"cpu      {step.name}: {step.op}{exact}"
        return
    yield from _segment_lines(step)


def _segment_lines(segment: Segment) -> Iterator[str]:
    yield f"program  {segment.name}: {segment.insn_count:,} instructions"
    for layer in segment.layers:
        yield f"  layer  {layer.name}: {layer.op}, {layer.macs:,} MACs"
