"""The digits network: one definition for training (torch) and for export (ONNX).

Input float32 (1, 1, 28, 28) = pixel / 255; output float32 (1, 10), one logit per digit.

    conv1 1->16 3x3, relu, maxpool 2       28x28 -> 14x14      112,896 MAC
    conv2 16->32 3x3, relu                 14x14               903,168
    conv3 32->32 3x3, relu                 14x14             1,806,336
    conv4 32->32 3x3, + conv2's, relu      14x14             1,806,336
    maxpool 2, conv5 32->64 3x3, relu      7x7                 903,168
    global average, fc 64->10              1x1                     640    sum 5,532,544 MAC

`export` folds batch normalisation into weights and biases, or leaves it to who reads the model.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

__all__ = ["DigitsNet", "export"]

_OPSET = 13
_IR_VERSION = 8
_EPSILON = 1e-5
_LIVELY = 0.6


class DigitsNet(nn.Module):
    """Five 3x3 convolutions with one residual add; (N, 1, 28, 28) -> (N, 10) logits."""

    def __init__(self) -> None:
        super().__init__()
        channels = [(1, 16), (16, 32), (32, 32), (32, 32), (32, 64)]
        self.convs = nn.ModuleList(nn.Conv2d(i, o, 3, padding=1, bias=False) for i, o in channels)
        self.norms = nn.ModuleList(nn.BatchNorm2d(o, eps=_EPSILON) for _, o in channels)
        for norm in self.norms:
            nn.init.constant_(norm.bias, _LIVELY)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.max_pool2d(torch.relu(self._conv(0, x)), 2)
        skip = torch.relu(self._conv(1, x))
        x = torch.relu(self._conv(2, skip))
        x = torch.relu(self._conv(3, x) + skip)
        x = nn.functional.max_pool2d(x, 2)
        x = torch.relu(self._conv(4, x))
        return self.fc(self.drop(x.mean(dim=(2, 3))))

    def idleness(self) -> torch.Tensor:
        """Penalty on channels that a Relu would mostly clamp; 0 when all centres are high enough.

        A test that compares bytes says little about a tensor that is mostly one value, so training
        keeps the mean before each Relu (the norm's bias) at _LIVELY standard deviations or more.
        """
        lacks = [torch.relu(_LIVELY * n.weight.abs() - n.bias) for n in self.norms]
        return torch.stack([lack.square().sum() for lack in lacks]).sum()

    def _conv(self, index: int, x: torch.Tensor) -> torch.Tensor:
        return self.norms[index](self.convs[index](x))


def export(net: DigitsNet, *, fold: bool = True) -> onnx.ModelProto:
    """Float ONNX model of `net` in inference form, opset 13, batch fixed to 1.

    `fold` takes batch normalisation into weights and biases; else it stands behind convolutions.
    """
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, npt.NDArray[np.float32]] = {}

    def add(op: str, inputs: list[str], output: str, **attributes: object) -> str:
        nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def conv(number: int, source: str) -> str:
        name = f"conv{number}"
        window: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
        if fold:
            constants[f"{name}_w"], constants[f"{name}_b"] = _folded(net, number - 1)
            return add("Conv", [source, f"{name}_w", f"{name}_b"], name, **window)
        norm = net.norms[number - 1]
        parts = (norm.weight, norm.bias, norm.running_mean, norm.running_var)
        constants[f"{name}_w"] = net.convs[number - 1].weight.detach().numpy()
        names = [f"norm{number}_{part}" for part in ("scale", "bias", "mean", "variance")]
        constants.update(zip(names, (p.detach().numpy() for p in parts), strict=True))
        conv_only = add("Conv", [source, f"{name}_w"], name, **window)
        return add("BatchNormalization", [conv_only, *names], f"norm{number}", epsilon=_EPSILON)

    def pool(source: str, name: str) -> str:
        return add("MaxPool", [source], name, kernel_shape=[2, 2], strides=[2, 2])

    x = pool(add("Relu", [conv(1, "image")], "relu1"), "pool1")
    skip = add("Relu", [conv(2, x)], "relu2")
    x = add("Relu", [conv(3, skip)], "relu3")
    x = add("Add", [conv(4, x), skip], "add4")
    x = pool(add("Relu", [x], "relu4"), "pool4")
    x = add("Relu", [conv(5, x)], "relu5")
    x = add("Flatten", [add("GlobalAveragePool", [x], "average")], "features")
    constants["fc_w"] = net.fc.weight.detach().numpy()
    constants["fc_b"] = net.fc.bias.detach().numpy()
    add("Gemm", [x, "fc_w", "fc_b"], "logits", transB=1)
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 28, 28])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)])
    model.ir_version = _IR_VERSION
    model.producer_name = "digits/train.py"
    onnx.checker.check_model(model, full_check=True)
    return model


def _folded(net: DigitsNet, index: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Weight (O, I, 3, 3) and bias (O,) of a convolution with its normalisation folded in."""
    norm = net.norms[index]
    variance, mean = norm.running_var.double(), norm.running_mean.double()
    factor = norm.weight.detach().double() / torch.sqrt(variance + _EPSILON)
    weight = net.convs[index].weight.detach().double() * factor[:, None, None, None]
    bias = norm.bias.detach().double() - mean * factor
    return weight.float().numpy(), bias.float().numpy()
