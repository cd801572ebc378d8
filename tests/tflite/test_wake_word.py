"""A trained streaming network with variables, as it is distributed."""

from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from litert.interpreter import KERNELS
from litert.rewrite import operator_outputs, with_outputs

import vitral
from vitral.compiler.frontends.tflite import TfliteRounding

MODEL = Path(__file__).parents[1] / "data" / "tflite" / "hey_mycroft.tflite"
STEPS = 30


@pytest.mark.parametrize(
    ("rounding", "device"), [("reference", "fsim"), ("xnnpack", "fsim"), ("reference", "tsim")]
)
def test_every_layer_of_every_step_has_the_interpreters_bytes(
    rounding: TfliteRounding, device: str
):
    model = MODEL.read_bytes()
    layers = operator_outputs(model, "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
    model = with_outputs(model, layers)
    interpreter = Interpreter(model_content=model, experimental_op_resolver_type=KERNELS[rounding])
    interpreter.allocate_tensors()
    module = vitral.compile(model, tflite_rounding=rounding)
    sound, *variables = (info for info in module.inputs)
    states = {v.name: np.full(v.shape, v.zero_point, np.int8) for v in variables}
    rng = np.random.default_rng(0)
    seen: list[np.ndarray] = []
    with vitral.Session(module, device=device) as session:
        names = [info.name for info in session.get_outputs()]
        for step in range(STEPS if device == "fsim" else 3):
            x = rng.integers(-128, 128, sound.shape).astype(np.int8)
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
            interpreter.invoke()
            results = dict(zip(names, session.run(None, {sound.name: x, **states}), strict=True))
            states = {name: results[f"{name}.next"] for name in states}
            for info in interpreter.get_output_details():
                expected = interpreter.get_tensor(info["index"])
                assert np.array_equal(results[info["name"]], expected), (step, info["name"])
            seen.append(results[names[1]])
    assert np.unique(seen).size > 3


def test_variables_are_announced():
    module = vitral.compile(MODEL)
    variables = {info.name for info in module.inputs[1:]}
    assert variables == {f"stream_{number}/states" for number in range(6, 12)}
    assert {f"{name}.next" for name in variables} == {o.name for o in module.outputs[1:]}
    assert all("is an input" in notice for notice in module.notices)
    assert len(module.notices) == 6
