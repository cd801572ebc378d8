"""Benchmarks: standard layers and networks with seeded data, checked byte by byte as they run."""

from vitral.bench.result import BenchLayer, BenchResult
from vitral.bench.run import bench_names, run_bench

__all__ = ["BenchLayer", "BenchResult", "bench_names", "run_bench"]
