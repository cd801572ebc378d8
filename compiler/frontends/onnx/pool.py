"""MaxPool, AveragePool, GlobalAveragePool and their QLinear forms."""

from dataclasses import replace

from vitral.compiler.frontends.onnx.geometry import Geometry, output_size, read_geometry
from vitral.compiler.frontends.onnx.params import quantized_input, quantized_output
from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import Pending, Real, Symbol, Tensor
from vitral.compiler.ir import Quant
from vitral.compiler.ir.ops import AveragePool, MaxPool

__all__ = ["OPERATORS"]


def _max_pool(scope: Scope) -> Symbol:
    """Codes keep their order under a monotone table, so the pool works on codes."""
    x = scope.need(0)
    geometry = _geometry(scope, x)
    _refuse_empty_windows(scope, geometry, x.shape[2:])
    if isinstance(x, Real) and x.monotone:
        return replace(x, tensor=_pooled(scope, x.tensor, geometry, scope.value_name(x)))
    tensor = scope.builder.tensor(x, scope.node.name)
    if tensor.type.dtype not in ("int8", "uint8", "float32"):
        raise scope.fail(f"needs int8, uint8 or float32, got {tensor.type.dtype}")
    return _pooled(scope, tensor, geometry, scope.output)


def _pooled(scope: Scope, tensor: Tensor, geometry: Geometry, name: str) -> Tensor:
    source = scope.reshape(tensor, _two_dimensional(tensor.shape))
    flat = len(tensor.shape) == 4
    output = name if flat else scope.builder.unique(f"{name}.wide")
    op = MaxPool(
        name=scope.node.name,
        inputs=(source.name,),
        output=output,
        kernel=geometry.kernel,
        strides=geometry.strides,
        pads=geometry.all_pads,
        dilations=geometry.dilations,
    )
    result = scope.builder.emit(op)
    return result if flat else scope.reshape(result, (*result.shape[:2], result.shape[3]), name)


def _refuse_empty_windows(scope: Scope, geometry: Geometry, size: tuple[int, ...]) -> None:
    """Every window must meet an element; first and last windows are the ones at risk."""
    whole = (1, *size) if len(size) == 1 else size
    top, left, bottom, right = geometry.all_pads
    for i, (n, before, after) in enumerate(zip(whole, (top, left), (bottom, right), strict=True)):
        step, taps = geometry.dilations[i], geometry.kernel[i]
        extent = (taps - 1) * step + 1
        last = (n + before + after - extent) // geometry.strides[i] * geometry.strides[i]
        for start in (0, last):
            first = max(0, -(-(before - start) // step))  # tap at or behind the first element
            if first >= taps or start + first * step >= before + n:
                raise scope.fail("needs an element in every window, got one that is all padding")


def _average_pool(scope: Scope) -> Symbol:
    x = scope.need(0)
    return _average(scope, x, _geometry(scope, x), bool(scope.integer("count_include_pad", 0)))


def _qlinear_average_pool(scope: Scope) -> Symbol:
    _refuse_channels_last(scope)
    x = quantized_input(scope, 0)
    pending = _average(scope, x, _geometry(scope, x), bool(scope.integer("count_include_pad", 0)))
    return _rounded(scope, pending, x)


def _global_average_pool(scope: Scope) -> Symbol:
    x = scope.need(0)
    return _average(scope, x, _whole(scope, x), False)


def _qlinear_global_average_pool(scope: Scope) -> Symbol:
    _refuse_channels_last(scope)
    x = quantized_input(scope, 0)
    return _rounded(scope, _average(scope, x, _whole(scope, x), False), x)


def _rounded(scope: Scope, pending: Symbol, x: Symbol) -> Symbol:
    assert isinstance(x, Real)
    quant = quantized_output(scope, 3, x.tensor.type.dtype)
    return scope.builder.quantized(pending, quant, scope.node.name, scope.output)


def _average(scope: Scope, x: Symbol, geometry: Geometry, include_pad: bool) -> Symbol:
    if not include_pad:
        _refuse_empty_windows(scope, geometry, x.shape[2:])
    if isinstance(x, Real) and x.quant is not None:
        return _integer_average(scope, x, x.quant, geometry, include_pad)
    tensor = scope.real(x)
    source = scope.reshape(tensor, _two_dimensional(x.shape))
    attributes = {
        "kernel": geometry.kernel,
        "strides": geometry.strides,
        "pads": geometry.pads,
        "excess": geometry.excess,
        "dilations": geometry.dilations,
        "include_pad": include_pad,
    }
    shape = (*x.shape[:2], *output_size(scope, source.shape[2:], geometry))
    flat = len(x.shape) == 4
    output = scope.output if flat else scope.builder.unique(f"{scope.output}.wide")
    result = scope.float_op("average_pool", (source,), shape, attributes=attributes, output=output)
    return result if flat else scope.reshape(result, (*shape[:2], shape[3]), scope.output)


def _integer_average(
    scope: Scope, x: Real, quant: Quant, geometry: Geometry, include_pad: bool
) -> Pending:
    source = scope.reshape(x.tensor, _two_dimensional(x.shape))
    op = AveragePool(
        name=scope.node.name,
        inputs=(source.name,),
        output="",
        y_quant=None,
        x_quant=quant,
        kernel=geometry.kernel,
        strides=geometry.strides,
        pads=geometry.pads,
        excess=geometry.excess,
        dilations=geometry.dilations,
        include_pad=include_pad,
    )
    pending = scope.pending(op)
    n, c, _, w = pending.shape
    return pending if len(x.shape) == 4 else replace(pending, shape=(n, c, w))


def _geometry(scope: Scope, x: Symbol) -> Geometry:
    kernel = scope.integer_list("kernel_shape")
    if not kernel:
        raise scope.fail("needs kernel_shape, got none")
    if min(kernel) < 1:
        raise scope.fail(f"needs kernel_shape >= 1, got {list(kernel)}")
    return read_geometry(scope, x.shape[2:], kernel, ceil_mode=bool(scope.integer("ceil_mode", 0)))


def _whole(scope: Scope, x: Symbol) -> Geometry:
    if len(x.shape) not in (3, 4):
        raise scope.fail(f"needs an input of rank 3 or 4, got shape {list(x.shape)}")
    _, _, height, width = _two_dimensional(x.shape)
    return Geometry(kernel=(height, width), strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0))


def _two_dimensional(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if len(shape) == 4 else (*shape[:2], 1, *shape[2:])


def _refuse_channels_last(scope: Scope) -> None:
    if scope.integer("channels_last", 0):
        raise scope.fail("needs channels_last 0, got 1")


OPERATORS = {
    ("", "MaxPool"): _max_pool,
    ("", "AveragePool"): _average_pool,
    ("", "GlobalAveragePool"): _global_average_pool,
    ("com.microsoft", "QLinearAveragePool"): _qlinear_average_pool,
    ("com.microsoft", "QLinearGlobalAveragePool"): _qlinear_global_average_pool,
}
