"""QuantizeLinear and DequantizeLinear."""

from vitral.compiler.frontends.onnx.model import element_name
from vitral.compiler.frontends.onnx.params import read_quant, zero_point_dtype
from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import Const, Symbol, Tensor
from vitral.compiler.ir import QUANTIZED
from vitral.errors import CompileError

__all__ = ["OPERATORS"]

_DEQUANTIZED = (*QUANTIZED, "int32")


def _dequantize_linear(scope: Scope) -> Symbol:
    _refuse_blocks(scope)
    _need_single(scope, "output_dtype")
    data = scope.need(0)
    if isinstance(data, Const):
        dtype = str(data.array.dtype)
    else:
        dtype = data.type.dtype if isinstance(data, Tensor) else "float32"
    if dtype not in _DEQUANTIZED:
        raise scope.fail(f"needs int8, uint8 or int32 as {scope.named(0)}, got {dtype}")
    axis = _axis(scope, len(data.shape))
    quant = read_quant(scope, 1, dtype=dtype, shape=data.shape, axis=axis)
    if quant.axis is not None and isinstance(data, Tensor) and dtype in QUANTIZED:
        scope.builder.notice(
            f"node {scope.node.name!r}: {scope.named(0)}, an activation, has {len(quant.scale)}"
            f" scales along axis {axis}; what reads it runs in float32 on the CPU, a float island"
        )
    return scope.builder.dequantized(data, quant, scope.node.name)


def _quantize_linear(scope: Scope) -> Symbol:
    _refuse_blocks(scope)
    _need_single(scope, "precision")
    data = scope.need(0)
    _need_float(scope, data)
    dtype = zero_point_dtype(scope, 2, _output_dtype(scope))
    axis = _axis(scope, len(data.shape))
    quant = read_quant(scope, 1, dtype=dtype, shape=data.shape, axis=axis)
    try:
        return scope.builder.quantized(data, quant, scope.node.name, scope.output)
    except ValueError as error:
        text = str(error)
        already_named = isinstance(error, CompileError) and text.startswith("node ")
        raise (error if already_named else scope.fail(text)) from None


def _need_float(scope: Scope, data: Symbol) -> None:
    dtype = "float32"
    if isinstance(data, Const):
        dtype = str(data.array.dtype)
    elif isinstance(data, Tensor):
        dtype = data.type.dtype
    if dtype != "float32":
        raise scope.fail(f"needs float32 as {scope.named(0)}, got {dtype}")


def _need_single(scope: Scope, attribute: str) -> None:
    """The law is one of float32."""
    name = element_name(scope.integer(attribute, 0) or 1)
    if name != "float":
        raise scope.fail(f"needs {attribute} float32, got {name}")


def _output_dtype(scope: Scope) -> str:
    number = scope.integer("output_dtype", 0)
    return element_name(number) if number else "uint8"


def _axis(scope: Scope, rank: int) -> int:
    axis = scope.integer("axis", 1)
    return axis + rank if axis < 0 else axis


def _refuse_blocks(scope: Scope) -> None:
    blocks = scope.integer("block_size", 0)
    if blocks:
        raise scope.fail(f"needs scales per tensor or axis, got block_size {blocks}")


OPERATORS = {
    ("", "QuantizeLinear"): _quantize_linear,
    ("", "DequantizeLinear"): _dequantize_linear,
    ("com.microsoft", "QuantizeLinear"): _quantize_linear,
    ("com.microsoft", "DequantizeLinear"): _dequantize_linear,
}
