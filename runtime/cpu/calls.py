"""`call`: any operator of the text form, with the numbers of its interpreter."""

from typing import Any

import numpy.typing as npt

__all__ = ["OPERATORS"]


def _call(*args: npt.NDArray[Any], operator: str, **attributes: Any) -> npt.NDArray[Any]:
    from vitral.compiler.ir.operators import Misfit, evaluate_call

    try:
        return evaluate_call(operator, attributes, args)
    except Misfit as error:
        raise ValueError(f"{operator}: {error}") from None


OPERATORS = {"call": _call}
