"""Random networks give LiteRT's bytes on both simulators."""

import pytest
from litert.compare import assert_same_bytes
from litert.random_nets import random_net

from vitral.compiler.frontends.tflite import TfliteRounding


@pytest.mark.parametrize("rounding", ["reference", "xnnpack"])
def test_random_networks_on_fsim(rounding: TfliteRounding):
    for seed in range(20):
        assert_same_bytes(random_net(seed), rounding=rounding, seed=seed, telling=False)


def test_random_networks_on_tsim():
    for seed in range(100, 104):
        assert_same_bytes(random_net(seed), device="tsim", seed=seed, telling=False)


@pytest.mark.slow
@pytest.mark.parametrize("rounding", ["reference", "xnnpack"])
def test_many_random_networks(rounding: TfliteRounding):
    for seed in range(1000, 1200):
        assert_same_bytes(random_net(seed), rounding=rounding, seed=seed, telling=False)
