"""Benchmarks: standard layers with seeded data, checked against exact results as they run."""

from vitral.bench.run import BenchLayer, BenchResult, bench_names, run_bench

__all__ = ["BenchLayer", "BenchResult", "bench_names", "run_bench"]
