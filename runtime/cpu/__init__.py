"""The operators of a module's CPU steps, in numpy.

An operator takes the step's tensors, then its constants, then its attributes by keyword, and
returns the result. Quantized tensors are int8 throughout.
"""

from collections.abc import Callable, Mapping
from typing import Any

from vitral.runtime.cpu import (
    activations,
    calls,
    convert,
    fixed_point,
    floats,
    interpolate,
    island,
    patches,
    pool,
    reduce,
    shape,
    softmax,
    sums,
)

__all__ = ["OPERATORS"]

OPERATORS: Mapping[str, Callable[..., Any]] = {
    **convert.OPERATORS,
    **shape.OPERATORS,
    **pool.OPERATORS,
    **reduce.OPERATORS,
    **interpolate.OPERATORS,
    **patches.OPERATORS,
    **sums.OPERATORS,
    **fixed_point.OPERATORS,
    **softmax.OPERATORS,
    **floats.OPERATORS,
    **island.OPERATORS,
    **activations.OPERATORS,
    **calls.OPERATORS,
}
"""Name of a step's operator to its function; all but float.region have one result."""
