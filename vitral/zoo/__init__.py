"""Standard networks in QDQ form with seeded weights and calibrated scales: needs onnx, no files."""

from vitral.zoo.catalogue import NETWORKS, build, sample_input

__all__ = ["NETWORKS", "build", "sample_input"]
