"""Layers for tests of the compiler: random layers, their exact results, and runs."""

from convs.exact import add, convolve, pool, run_exact
from convs.folders import layer_folder
from convs.layers import chain, conv_layer, random_layer, small_configs
from convs.programs import Compiled, compile_layers, pack, unpack
from convs.windows import (
    add_layer,
    average,
    network,
    pool_layer,
    random_add,
    random_depthwise,
    random_pool,
)

__all__ = [
    "Compiled",
    "add",
    "add_layer",
    "average",
    "chain",
    "compile_layers",
    "conv_layer",
    "convolve",
    "layer_folder",
    "network",
    "pack",
    "pool",
    "pool_layer",
    "random_add",
    "random_depthwise",
    "random_layer",
    "random_pool",
    "run_exact",
    "small_configs",
    "unpack",
]
