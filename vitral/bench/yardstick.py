"""A fixed piece of numpy work: what a processor second is worth on this host."""

import time

import numpy as np

__all__ = ["numpy_workload"]

SIZE = 1 << 22
ROUNDS = 2


def numpy_workload() -> float:
    """Processor seconds for sorting and adding up 2**22 seeded numbers twice, single-threaded."""
    start = time.process_time()
    rng = np.random.default_rng(0)
    for _ in range(ROUNDS):
        values = rng.integers(0, 1 << 30, SIZE)
        values.sort(kind="stable")
        np.cumsum(values, out=values)
    return time.process_time() - start
