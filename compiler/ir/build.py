"""Making graphs of calls one operator at a time, with types inferred as they come."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir.call import Call
from vitral.compiler.ir.graph import Graph
from vitral.compiler.ir.infer import infer
from vitral.compiler.ir.ops import Op
from vitral.compiler.ir.types import TensorType
from vitral.errors import CompileError

__all__ = ["GraphBuilder"]


class GraphBuilder:
    """Collects operators and constants; value names that it makes up are unused ones.

    Parameters
    ----------
    inputs : mapping
        Input name to its type.
    reserved : sequence of str
        Names that it does not make up.
    """

    def __init__(self, inputs: Mapping[str, TensorType], reserved: Sequence[str] = ()) -> None:
        self.types: dict[str, TensorType] = dict(inputs)
        self.constants: dict[str, npt.NDArray[Any]] = {}
        self.ops: list[Op] = []
        self._inputs = tuple(inputs)
        self._reserved = set(reserved)

    def call(
        self,
        op: str,
        *inputs: "str | npt.NDArray[Any] | np.generic",
        name: str | None = None,
        output: str | None = None,
        **attrs: Any,
    ) -> str:
        """Append a Call; arrays among the arguments become constants. Returns the result's name.

        `name` is the operator's, `output` the result's; one given stands for the other too.

        Raises
        ------
        CompileError
            In one line naming the operator, when arguments or attributes do not fit.
        """
        result = output or self.fresh(name or op)
        args = tuple(item if isinstance(item, str) else self.constant(item) for item in inputs)
        return self.append(
            Call(name=name or result, inputs=args, output=result, op=op, attrs=attrs)
        )

    def append(self, op: Op) -> str:
        """Append an operator on values that are there. Returns its result's name."""
        for value in op.inputs:
            if value not in self.types:
                raise CompileError(f"node {op.name!r}: needs value {value!r}, found none")
        self._define(op.output, infer(op, [self.types[value] for value in op.inputs]))
        self.ops.append(op)
        return op.output

    def constant(self, value: "npt.NDArray[Any] | np.generic", name: str | None = None) -> str:
        """A constant's name."""
        array = np.asarray(value)
        made = name or self.fresh("constant")
        self._define(made, TensorType(array.shape, str(array.dtype)))
        self.constants[made] = array
        return made

    def fresh(self, stem: str) -> str:
        """A name that no value has: the stem itself, or with a number behind it."""
        name, number = stem, 0
        while name in self.types or name in self._reserved:
            number += 1
            name = f"{stem}_{number}"
        return name

    def graph(self, *outputs: str, notices: Sequence[str] = ()) -> Graph:
        """What was collected."""
        return Graph(
            inputs=self._inputs,
            outputs=outputs,
            types=self.types,
            ops=tuple(self.ops),
            constants=self.constants,
            notices=tuple(notices),
        )

    def _define(self, name: str, type_: TensorType) -> None:
        if name in self.types:
            raise CompileError(f"value {name!r} is defined a second time")
        self.types[name] = type_
