"""Vitral as a backend of onnx: `onnx.backend.base.Backend` over `vitral.compile` and `Session`.

    import vitral.onnx_backend as backend

    outputs = backend.run_model(model, [x], device="fsim")
    prepared = backend.prepare(model)            # compiles once per set of operands
    outputs = prepared.run([x])                  # or {"x": x}

Vitral compiles ahead of time, so what decides about a program must be known by then: weights,
scales, zero points, shapes, pads. Models that take these as inputs are compiled when they are run,
with the values given; only inputs that a node reads as data stay inputs of the program.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

import vitral
from vitral.config import CoreConfig
from vitral.errors import DeviceError, VitralError
from vitral.runtime.device import device_names

__all__ = [
    "VitralBackend",
    "VitralRep",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]

Array = npt.NDArray[Any]
Inputs = Sequence[Any] | Mapping[str, Any]

DEFAULT_DEVICE = "fsim"
_ALIASES = {"CPU": DEFAULT_DEVICE}
"""onnx's own name for the host, on which the simulator runs."""

_ALL = range(1 << 16)
_DATA: dict[str, Sequence[int]] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Pow", "Sum", "Mean", "Max", "Min"), _ALL),
    **dict.fromkeys(("Concat", "MatMul", "Gemm"), _ALL),
    "QLinearAdd": (0, 3),
    "QLinearMul": (0, 3),
    "MatMulInteger": (0, 1),
    "QLinearMatMul": (0, 3),
    "QLinearConcat": range(2, 1 << 16, 3),
}
"""Operator to the positions at which it reads data; it is the first for those not listed."""
_FIRST = (0,)


class VitralRep(BackendRep):
    """A model on a device; compiled for each set of shapes and operands that it is run with.

    Parameters
    ----------
    model : onnx.ModelProto
    device : str
        A name of `vitral.runtime.device.DEVICES`, or "CPU" for the default one.
    target : str or CoreConfig
        The core to compile for.
    """

    def __init__(
        self, model: onnx.ModelProto, device: str, *, target: str | CoreConfig = "sim"
    ) -> None:
        self._model, self._device, self._target = model, device, target
        constants = {constant.name for constant in model.graph.initializer}
        self._inputs = [info.name for info in model.graph.input if info.name not in constants]
        self._data = _data_names(model.graph, self._inputs)
        self._outputs = [info.name for info in model.graph.output]
        self._result = namedtupledict("Outputs", self._outputs)
        self._compiled: dict[Any, vitral.Module] = {}
        if self._data == set(self._inputs) and not _is_open(model.graph, self._inputs):
            self._module({}, {})

    def run(self, inputs: Inputs, **kwargs: Any) -> tuple[Array, ...]:
        """The outputs in the model's order, for inputs in its order or by name.

        Raises
        ------
        VitralError
            In one line, for a model or inputs that Vitral refuses.
        """
        if kwargs:
            raise DeviceError(f"run takes no options, got {', '.join(kwargs)}")
        given = self._named(inputs)
        operands = {name: array for name, array in given.items() if name not in self._data}
        data = {name: array for name, array in given.items() if name in self._data}
        module = self._module(operands, {name: array.shape for name, array in data.items()})
        with vitral.Session(module, self._device) as session:
            return self._result(*session.run(self._outputs, data))

    def _named(self, inputs: Inputs) -> dict[str, Array]:
        if not isinstance(inputs, Mapping):
            if not isinstance(inputs, list | tuple):
                inputs = [inputs]
            if len(inputs) > len(self._inputs):
                raise DeviceError(f"the model takes {len(self._inputs)} inputs, got {len(inputs)}")
            inputs = dict(zip(self._inputs, inputs, strict=False))
        return {name: _array(value) for name, value in inputs.items()}

    def _module(
        self, operands: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]]
    ) -> vitral.Module:
        key = (
            tuple((n, a.dtype.str, a.shape, a.tobytes()) for n, a in operands.items()),
            tuple(shapes.items()),
        )
        if key not in self._compiled:
            model = _bound(self._model, operands)
            self._compiled[key] = vitral.compile(model, target=self._target, shapes=shapes)
        return self._compiled[key]


class VitralBackend(Backend):
    """Devices are those of `vitral.Session`; "CPU" stands for fsim."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = DEFAULT_DEVICE, **_: Any) -> bool:
        """Whether `prepare` takes the model, as far as that can be said before its inputs."""
        try:
            cls.prepare(model, device)
        except VitralError:
            return False
        return True

    @classmethod
    def prepare(
        cls, model: onnx.ModelProto, device: str = DEFAULT_DEVICE, **kwargs: Any
    ) -> VitralRep:
        """The model, compiled if its inputs are all data of known shapes.

        Keywords are those of `VitralRep`. Raises VitralError, in one line.
        """
        if not cls.supports_device(device):
            raise DeviceError(f"no device {device!r}; known: CPU, {', '.join(device_names())}")
        return VitralRep(model, _ALIASES.get(device, device), **kwargs)

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Inputs, device: str = DEFAULT_DEVICE, **kwargs: Any
    ) -> tuple[Array, ...]:
        """`prepare` and `run` at once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Inputs,
        device: str = DEFAULT_DEVICE,
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Array, ...]:
        """One operator on inputs in the node's order; `opset_version` is the newest by default.

        `outputs_info` is not needed: results have the types and shapes that the operator gives.
        """
        model = _model_of(node, inputs, kwargs.pop("opset_version", None))
        return cls.run_model(model, inputs, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return _ALIASES.get(device, device) in device_names()


def _array(value: Any) -> Array:
    """An array, from the protobuf too in which onnx passes types that numpy lacks."""
    is_proto = isinstance(value, onnx.TensorProto)
    return numpy_helper.to_array(value) if is_proto else np.asarray(value)


def _data_names(graph: onnx.GraphProto, inputs: Sequence[str]) -> set[str]:
    """The inputs that some node reads as data, or that are an output as they are."""
    found = {info.name for info in graph.output}
    for node in graph.node:
        places = _DATA.get(node.op_type, _FIRST)
        found.update(n for i, n in enumerate(node.input) if i in places)
    return found.intersection(inputs)


def _is_open(graph: onnx.GraphProto, inputs: Sequence[str]) -> bool:
    """Whether a size of some input is known only when it is given."""
    tensors = [info.type.tensor_type for info in graph.input if info.name in inputs]
    return not all(
        tensor.HasField("shape") and all(d.HasField("dim_value") for d in tensor.shape.dim)
        for tensor in tensors
    )


def _bound(model: onnx.ModelProto, operands: Mapping[str, Array]) -> onnx.ModelProto:
    """The model with the operands as initializers."""
    if not operands:
        return model
    bound = onnx.ModelProto()
    bound.CopyFrom(model)
    kept = [info for info in bound.graph.input if info.name not in operands]
    del bound.graph.input[:]
    bound.graph.input.extend(kept)
    bound.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in operands.items()
    )
    return bound


def _model_of(node: onnx.NodeProto, inputs: Inputs, opset: int | None) -> onnx.ModelProto:
    """A graph of the node alone, whose outputs have no declared types."""
    names = [name for name in node.input if name]
    arrays = [inputs[name] for name in names] if isinstance(inputs, Mapping) else inputs
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype), np.shape(array)
        )
        for name, array in zip(names, arrays, strict=True)
    ]
    results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    graph = helper.make_graph([node], node.name or node.op_type, infos, results)
    version = opset or onnx.defs.onnx_opset_version()
    opsets = [helper.make_opsetid("", version)]
    if node.domain not in ("", "ai.onnx"):
        opsets.append(helper.make_opsetid(node.domain, 1))
    return helper.make_model(graph, opset_imports=opsets)


is_compatible = VitralBackend.is_compatible
prepare = VitralBackend.prepare
run_model = VitralBackend.run_model
run_node = VitralBackend.run_node
supports_device = VitralBackend.supports_device
