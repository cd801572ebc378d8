"""The oracle of the tests: exact evaluation of quantized ONNX graphs, independent of the product.

    expected = oracle.evaluate("model.onnx", {"image": x})
    report = oracle.compare(expected, actual, names=["logits"])

It walks the ONNX protobuf and imports numpy, onnx and the standard library only. Its law:

* Conv, Gemm, MatMul, ConvTranspose (QLinear forms, and DQ -> op -> [Relu|Clip] -> Q): A = exact sum
  with zero points and bias, checked to fit int32; m[o] = fl32(fl32(xs * ws[o]) / ys);
  y = sat(rne(fl32(fl32(A) * m[o])) + yz). Relu and Clip clamp at the quantized image of the bound.
* Element-wise operators, Q and DQ: op by op in IEEE float32; Q = sat(rne(fl32(v / ys)) + yz), that
  is, ties to even before the zero point is added. QLinearAdd and the like: as their QDQ form.
* Averages: exact integer sum, then one rne of the exact rational.
* Sigmoid, Tanh: one rne of the value evaluated with 60 digits.
* MaxPool, Reshape, Concat and other moves keep integers; padding never wins a maximum.
* A pending sum that meets a float operator instead of a Q becomes float32 fl32(A) * fl32(xs * ws).

To add an operator: write `f(node, args) -> value` in the file of its family and enter it in that
file's OPERATORS table.
"""

from oracle.clamps import clamp_values
from oracle.compare import Report, TensorReport, compare
from oracle.errors import OracleError
from oracle.evaluate import OPERATORS, evaluate

__all__ = [
    "OPERATORS",
    "OracleError",
    "Report",
    "TensorReport",
    "clamp_values",
    "compare",
    "evaluate",
]
