"""The graph of a model after any pass, by the pass's name."""

from collections.abc import Callable, Mapping, Sequence

from vitral.compiler.frontends.onnx.model import Source
from vitral.compiler.frontends.relay import import_calls, is_text_file, read_text
from vitral.compiler.frontends.tflite import is_tflite
from vitral.compiler.ir import Graph, verify
from vitral.compiler.passes.lower_calls import is_integer, lower_calls
from vitral.compiler.pipeline import PASSES, import_model
from vitral.errors import CompileError

__all__ = ["IMPORT", "after_pass", "calls_of", "pass_names"]

IMPORT = "import"
"""The graph that the first pass of `vitral.compile` is given."""

_Named = list[tuple[str, Callable[[Graph], Graph]]]


def pass_names() -> dict[str, list[str]]:
    """Flow ("compile", "global-scale" or "vta") to the names of its passes in their order.

    A pass that runs a second time is called `name:2`.
    """
    compiling = [name for name, _ in _numbered(PASSES)]
    scaling = [name for name, _ in _numbered(_global_scale())]
    return {
        "compile": [IMPORT, *compiling],
        "global-scale": scaling,
        "vta": [lower_calls.__name__],
    }


def calls_of(
    model: Source | Graph, shapes: Mapping[str, Sequence[int] | int] | None = None
) -> Graph:
    """A model as it is written: an ONNX model's nodes as calls, a text's graph, a TFLite import."""
    if is_text_file(model):
        return read_text(model)
    if isinstance(model, Graph):
        return model
    if is_tflite(model):
        return import_model(model, shapes)
    return import_calls(model, shapes)


def after_pass(
    model: Source | Graph,
    name: str,
    shapes: Mapping[str, Sequence[int] | int] | None = None,
) -> Graph:
    """The graph that the passes of a flow, up to the named one, make of a model.

    Raises CompileError, in one line, for an unknown pass or what a pass refuses.
    """
    names = pass_names()
    if name in names["global-scale"]:
        return _applied(calls_of(model, shapes), _numbered(_global_scale()), name)
    if name in names["vta"]:
        return _integers(calls_of(model, shapes))
    if name not in names["compile"]:
        known = ", ".join(item for flow in names.values() for item in flow)
        raise CompileError(f"needs a pass among {known}, got {name!r}")
    graph = import_model(model, shapes)
    verify(graph)
    return graph if name == IMPORT else _applied(graph, _numbered(PASSES), name)


def _integers(graph: Graph) -> Graph:
    if not is_integer(graph):
        raise CompileError(
            f"{lower_calls.__name__} needs a graph of integers; make one with"
            " vitral quantize --scheme global-scale"
        )
    return lower_calls(graph)


def _applied(graph: Graph, passes: _Named, last: str) -> Graph:
    for name, apply in passes:
        graph = apply(graph)
        verify(graph)
        if name == last:
            break
    return graph


def _numbered(passes: Sequence[Callable[..., Graph]]) -> _Named:
    counts: dict[str, int] = {}
    result: _Named = []
    for apply in passes:
        name = apply.__name__
        counts[name] = counts.get(name, 0) + 1
        shown = name if counts[name] == 1 else f"{name}:{counts[name]}"
        result.append((shown, apply))
    return result


def _global_scale() -> Sequence[Callable[..., Graph]]:
    from vitral.compiler.quantize.global_scale import PASSES as passes

    return passes
