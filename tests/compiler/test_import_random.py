"""Random networks give the oracle's bytes through frontend, passes and CPU operators."""

import numpy as np
import oracle
import pytest
from graphs import random_graph
from plans import run_model


@pytest.mark.parametrize("seed", range(120))
def test_random_network_gives_the_bytes_of_the_oracle(seed: int) -> None:
    model, feeds = random_graph(seed)
    expected = oracle.evaluate(model, feeds, outputs_only=True)
    actual = run_model(model, feeds)
    assert expected
    for name, want in expected.items():
        assert actual[name].dtype == want.dtype, f"seed {seed}, {name}"
        np.testing.assert_array_equal(actual[name], want, err_msg=f"seed {seed}, {name}")
