"""Variables of streaming networks, as inputs and outputs of the graph.

A variable that is read before it is assigned becomes an input of its name; what is assigned last
becomes an output of its name with `.next` behind it. The caller feeds the one from the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vitral.compiler.frontends.tflite.builder import Builder, Value
from vitral.compiler.frontends.tflite.model import TensorRecord
from vitral.compiler.ir import Quant

__all__ = ["NEXT", "States"]

NEXT = ".next"
"""What the output of a variable is called behind the variable's name."""


@dataclass
class States:
    """The variables of a model while it is imported, by name."""

    current: dict[str, Value] = field(default_factory=dict)
    assigned: dict[str, Value] = field(default_factory=dict)
    edges: dict[str, Quant] = field(default_factory=dict)

    def read(self, name: str, tensor: TensorRecord, builder: Builder) -> Value:
        """The variable's value, described by the tensor that takes it."""
        if name not in self.current:
            self.current[name] = builder.input(name, tensor.shape, tensor.dtype)
            self._note(name, tensor)
            start = "" if tensor.quant is None else f", of codes {tensor.quant.zero_point[0]}"
            builder.notice(
                f"variable {name!r} is an input and {name + NEXT!r} an output; feed the one to the"
                f" other, and the model's initial value at first (zeros{start})"
            )
        return self.current[name]

    def assign(self, name: str, value: Value, tensor: TensorRecord) -> None:
        """The variable's value from here on."""
        self.current[name] = self.assigned[name] = value
        self._note(name + NEXT, tensor)

    def outputs(self) -> Mapping[str, Value]:
        """The values that the next call needs, by the names of their outputs."""
        return {name + NEXT: value for name, value in self.assigned.items()}

    def _note(self, name: str, tensor: TensorRecord) -> None:
        if tensor.quant is not None and tensor.quant.axis is None:
            self.edges[name] = tensor.quant
