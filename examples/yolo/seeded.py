"""Weights of a seed for a Darknet network, so that the example needs no download.

They are drawn so that values neither grow nor vanish from layer to layer. What such a network finds
in a picture means nothing; that int8 finds the same as float does.
"""

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.darknet import write_weights
from vitral.compiler.frontends.darknet.sections import Section, parse_cfg

__all__ = ["seeded_weights"]

Array = npt.NDArray[np.float32]


def seeded_weights(cfg: str, seed: int = 0) -> bytes:
    """A .weights file for a cfg of convolutions and pools, one after the other."""
    rng = np.random.default_rng(seed)
    net, *sections = parse_cfg(cfg)
    channels = net.whole("channels")
    arrays: list[Array] = []
    for section in sections:
        if section.kind == "convolutional":
            arrays += _convolution(rng, section, channels)
            channels = section.whole("filters")
    return write_weights(arrays)


def _convolution(rng: np.random.Generator, section: Section, channels: int) -> list[Array]:
    """Biases, then gamma, mean and variance where it is normalised, then weights."""
    filters, size = section.whole("filters"), section.whole("size")
    normalised = section.flag("batch_normalize")
    fan_in = channels * size * size
    weight = rng.normal(0, np.sqrt(2 / fan_in), (filters, channels, size, size))
    first = [rng.normal(0, 0.2, filters)]
    if normalised:
        first += [
            rng.uniform(0.8, 1.2, filters),
            rng.normal(0, 0.1, filters),
            rng.uniform(0.7, 1.4, filters),
        ]
    return [array.astype(np.float32) for array in (*first, weight)]
