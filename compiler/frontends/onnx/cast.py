"""Cast between element types; integers of one byte are numbers with scale 1 here."""

from vitral.compiler.frontends.onnx.model import element_name
from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import Symbol, Tensor
from vitral.compiler.ir import QUANTIZED, Quant

__all__ = ["OPERATORS"]

_TARGETS = {"float": "float32", "int32": "int32", "int64": "int64", "bool": "bool"}


def _cast(scope: Scope) -> Symbol:
    x = scope.need(0)
    name = element_name(scope.integer("to", 1))
    dtype = _TARGETS.get(name)
    if isinstance(x, Tensor) and x.type.dtype == (dtype or name):
        return x
    if dtype is None:
        raise scope.fail(f"needs a cast to {', '.join(sorted(_TARGETS))}, got {name}")
    if isinstance(x, Tensor) and x.type.dtype in QUANTIZED:
        quant = Quant(dtype=x.type.dtype, scale=(1.0,), zero_point=(0,))
        x = scope.builder.dequantized(x, quant, scope.node.name)
    if not isinstance(x, Tensor) and dtype == "float32":
        return x
    tensor = scope.builder.tensor(x, scope.node.name)
    return scope.float_op("cast", (tensor,), x.shape, attributes={"dtype": dtype}, dtype=dtype)


OPERATORS = {("", "Cast"): _cast}
