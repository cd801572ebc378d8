"""Whole TFLite networks give LiteRT's bytes, with all multiplications on the accelerator."""

import pytest
from litert.compare import assert_same_bytes
from litert.nets import NETS

import vitral
from vitral.runtime.module import CpuStep


@pytest.mark.parametrize("name", NETS)
def test_networks_have_the_interpreters_bytes(name: str):
    for seed in range(2):
        module = assert_same_bytes(NETS[name](seed), seed=seed)
        assert sum(layer.macs for s in module.segments for layer in s.layers) == module.macs > 0
        assert not module.notices


@pytest.mark.parametrize("name", ["ds_cnn", "resnet8"])
def test_networks_run_in_one_program(name: str):
    module = vitral.compile(NETS[name](0))
    assert len(module.segments) == 1
    on_host = [step.op for step in module.steps if isinstance(step, CpuStep)]
    assert {*on_host} <= {"reshape", "transpose", "patches", "softmax_fixed"}


@pytest.mark.parametrize("name", NETS)
def test_rtl_has_the_interpreters_bytes(name: str):
    assert_same_bytes(NETS[name](3), device="tsim")


@pytest.mark.parametrize("name", NETS)
def test_xnnpacks_bytes(name: str):
    assert_same_bytes(NETS[name](1), rounding="xnnpack")
