"""LiteRT's interpreter with one of its three sets of kernels."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from ai_edge_litert.interpreter import Interpreter, OpResolverType

__all__ = ["KERNELS", "run_litert"]

KERNELS = {
    "reference": OpResolverType.BUILTIN_REF,
    "optimized": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "xnnpack": OpResolverType.BUILTIN,
}


def run_litert(
    model: bytes, feeds: Sequence[npt.NDArray], kernels: str = "reference"
) -> list[npt.NDArray]:
    """The outputs for one set of inputs, in the model's order."""
    interpreter = Interpreter(
        model_content=model, experimental_op_resolver_type=KERNELS[kernels], num_threads=1
    )
    interpreter.allocate_tensors()
    for info, array in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(info["index"], array)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(i["index"])) for i in interpreter.get_output_details()]
