"""A small padded convolution, compiled, as a program folder for `cosim.programs`."""

from pathlib import Path

import numpy as np
from convs import conv_layer, layer_folder

from vitral.config import CoreConfig

__all__ = ["save_conv"]


def save_conv(config: CoreConfig, folder: Path, *, seed: int) -> None:
    """Writes a 3x3 layer with uneven pads of its zero point and parameters of each channel."""
    rng = np.random.default_rng(seed)
    shape = (config.batch, config.block + 1, 6, 5)
    layer = conv_layer(
        rng,
        shape=shape,
        outs=config.block + 3,
        kernel=(3, 3),
        pads=(1, 2, 1, 0),
        pad_value=-7,
    )
    assert len(np.unique(layer.params.mult)) > 1, "parameters must differ between channels"
    x = rng.integers(-128, 128, shape).astype(np.int8)
    layer_folder(layer, config, x).save(folder)
