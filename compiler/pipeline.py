"""From a model to a compiled module: the list of passes and `compile`."""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from typing import Literal

from vitral.compiler.assemble import assemble
from vitral.compiler.frontends.onnx import import_onnx
from vitral.compiler.frontends.onnx.model import Source
from vitral.compiler.frontends.relay import import_graph, is_text_file, read_text
from vitral.compiler.frontends.tflite import TfliteRounding, import_tflite, is_tflite
from vitral.compiler.ir import Graph, verify
from vitral.compiler.passes.eliminate_dead import eliminate_dead
from vitral.compiler.passes.fold_flatten import fold_flatten
from vitral.compiler.passes.fold_pads import fold_pads
from vitral.compiler.passes.fold_tables import fold_tables
from vitral.compiler.passes.lower_adds import lower_adds
from vitral.compiler.passes.lower_calls import is_integer, lower_calls
from vitral.compiler.passes.lower_convs import lower_convs
from vitral.compiler.passes.lower_pools import lower_pools
from vitral.compiler.passes.lower_tables import lower_tables
from vitral.compiler.passes.note_edges import note_edges
from vitral.compiler.passes.place_followers import place_followers
from vitral.compiler.passes.prove import prove
from vitral.compiler.passes.sign_activations import sign_activations
from vitral.compiler.passes.simplify_views import simplify_views
from vitral.compiler.passes.sink_tables import sink_tables
from vitral.compiler.passes.strip_edges import strip_edges
from vitral.compiler.placement import Rules, annotate
from vitral.compiler.placement.auto import DEFAULT_CLOCK_MHZ, PLACES, Rates, place_graph
from vitral.compiler.placement.costs import CpuTable, default_table
from vitral.compiler.progress import Doing, Tell
from vitral.config import CoreConfig
from vitral.errors import CompileError
from vitral.isa import Profile
from vitral.runtime.module import Module

__all__ = ["PASSES", "compile", "import_model", "lower"]

Pass = Callable[[Graph], Graph]
Shapes = Mapping[str, Sequence[int] | int]
Io = Literal["float", "quantized"]

PASSES: tuple[Pass, ...] = (
    note_edges,
    eliminate_dead,
    simplify_views,
    fold_pads,
    fold_flatten,
    eliminate_dead,
    sign_activations,
    lower_convs,
    prove,
    fold_tables,
    sink_tables,
    lower_pools,
    lower_adds,
    fold_tables,
    lower_tables,
    place_followers,
    simplify_views,
    eliminate_dead,
)
"""Applied in this order; the graph is verified after each."""


def compile(
    model: Source | Graph,
    *,
    target: str | CoreConfig = "sim",
    shapes: Shapes | None = None,
    io: Io = "float",
    profile: str = "vitral",
    memory: int | None = None,
    host_layout: str = "auto",
    tflite_rounding: TfliteRounding = "reference",
    cpu: str = "auto",
    place: str = "accelerator",
    on_device: Mapping[str, str] | None = None,
    fallback_device: str | None = None,
    cpu_table: str | PathLike[str] | None = None,
    progress: Tell | None = None,
) -> Module:
    """Compile a quantized ONNX or TFLite model.

    Parameters
    ----------
    model : path, bytes, onnx.ModelProto or Graph
        An int8 network in QDQ or QOperator form, opset 10 or later; a TFLite file or its bytes,
        known by the identifier TFL3; a graph, or its text in a file called `.ir`.
    target : str or CoreConfig
        Name of a target, or the configuration of the core.
    shapes : mapping, optional
        Binds symbolic dimensions: input name to its whole shape, or symbol to its size.
    io : "float" or "quantized"
        Whether inputs and outputs keep the model's types, or QuantizeLinear and DequantizeLinear
        at the edges are left to the caller.
    profile : "vitral" or "vta"
        Instruction set profile of the programs. "vta" takes graphs of integers, as
        `vitral quantize --scheme global-scale` writes them.
    memory : int, optional
        Bytes of DRAM that the device has for the module; one that needs more is refused.
    host_layout : str
        How the host lays images out for first layers: "channels" as they are, "rows" or "windows"
        of the kernel as channels, "2x2" or other windows of pixels, or what is fastest ("auto").
    tflite_rounding : "reference", "double", "single" or "xnnpack"
        Whose bytes a TFLite model gives: those of LiteRT's reference kernels, of kernels that round
        twice everywhere, of builds with TFLITE_SINGLE_ROUNDING, or of its XNNPACK delegate.
    cpu : "auto" or "numpy"
        What runs float operators: onnxruntime those that have no form in numpy here ("auto"), or
        numpy alone, which refuses them by name.
    place : "accelerator", "cpu" or "auto"
        Where operators run that could run on either: all that is worth the way on the accelerator;
        all on the CPU; or what takes the least time by the cycle model and `cpu_table`.
    on_device : mapping, optional
        A node's name or an operator's ("nn.relu"), or a pattern with * and ?, to "accelerator" or
        "cpu". Of several that fit the last one counts; it goes before `place`.
    fallback_device : "accelerator" or "cpu", optional
        Where operators run that `on_device` does not name.
    cpu_table : path, optional
        What operators cost on the CPU, as `benchmarks/cpu_table.py` measures it; the committed
        table when it is not given.
    progress : callable, optional
        Told in a few words what is done next; its argument's `share` is the part of the work
        that is done, 0 to 1.

    Raises
    ------
    CompileError
        In one line, for a model that is malformed or that the compiler refuses.
    """
    if place not in PLACES:
        raise CompileError(f"place must be {' or '.join(PLACES)}, got {place!r}")
    if profile not in ("vitral", "vta"):
        raise CompileError(f"profile must be 'vitral' or 'vta', got {profile!r}")
    tell: Tell = progress or (lambda doing: None)
    config = _config(target)
    with _uncollected():
        tell(Doing("reading the model", 0))
        graph = import_model(model, shapes, tflite_rounding, cpu)
        tell(Doing("lowering", 0.03))
        if is_integer(graph):
            if on_device or fallback_device or place == "auto":
                raise CompileError(
                    "a graph of integers is placed as a whole: needs place accelerator or cpu,"
                    " without on_device and fallback_device"
                )
            chosen = None if place == "cpu" else Profile[profile.upper()]
            module = _integers(graph, config, tell, io, chosen)
        elif profile == "vta":
            raise CompileError(
                "profile 'vta' needs a graph of integers; make one with"
                " vitral quantize --scheme global-scale, or use profile 'vitral'"
            )
        else:
            rules = Rules(on_device or {}, fallback_device)
            lowered = lower(annotate(graph, rules), io=io)
            build = partial(assemble, config=config, tell=tell, host_layout=host_layout)
            module = place_graph(lowered, config, place, _rates(target, cpu_table), build)
        if memory is not None and module.arena_bytes > memory:
            raise CompileError(
                f"the module needs {module.arena_bytes} bytes of DRAM for weights, programs and"
                f" activations, {memory} are available; give it more or compile a smaller network"
            )
        tell(Doing("verifying", 0.8))
        _verify(module)
        return module


def import_model(
    model: Source | Graph,
    shapes: Shapes | None = None,
    tflite_rounding: TfliteRounding = "reference",
    cpu: str = "auto",
) -> Graph:
    """The graph of a model; arguments as of `compile`."""
    if cpu not in ("auto", "numpy"):
        raise CompileError(f"cpu must be 'auto' or 'numpy', got {cpu!r}")
    if is_text_file(model):
        model = read_text(model)
    if isinstance(model, Graph):
        return import_graph(model, shapes, cpu)
    if is_tflite(model):
        return import_tflite(model, shapes, tflite_rounding)
    return import_onnx(model, shapes, cpu)


def lower(graph: Graph, *, io: Io = "float") -> Graph:
    """Run the passes; convolutions come out in the accelerator's arithmetic."""
    if io not in ("float", "quantized"):
        raise CompileError(f"io must be 'float' or 'quantized', got {io!r}")
    passes = list(PASSES)
    if io == "quantized":
        passes.insert(passes.index(note_edges) + 1, strip_edges)
    verify(graph)
    for apply in passes:
        graph = apply(graph)
        verify(graph)
    return graph


def _integers(
    graph: Graph, config: CoreConfig, tell: Tell, io: Io, profile: Profile | None
) -> Module:
    """The module of a graph of calls on integers; its programs are plain in either profile.

    Without a profile all of it runs on the CPU.
    """
    if io != "float":
        raise CompileError(f"io must be 'float' for a graph of integers, got {io!r}")
    verify(graph)
    if profile is None:
        return assemble(graph, config, tell)
    return assemble(graph, config, tell, on_cpu=lower_calls, profile=profile)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without garbage collection: a compilation makes millions of small records and no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _config(target: str | CoreConfig) -> CoreConfig:
    if isinstance(target, CoreConfig):
        return target
    from vitral.targets import target_config

    return target_config(target)


def _rates(target: str | CoreConfig, cpu_table: str | PathLike[str] | None) -> Rates:
    from vitral.targets import find_target

    clock = find_target(target).clock_mhz if isinstance(target, str) else None
    table = default_table() if cpu_table is None else CpuTable.load(cpu_table)
    return Rates(table, (clock or DEFAULT_CLOCK_MHZ) * 1e6)


def _verify(module: Module) -> None:
    from vitral.verify import verify_module

    verify_module(module)
