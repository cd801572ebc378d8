"""Configurations that random programs run on: small memories, so that accesses meet often."""

from vitral.config import CoreConfig

__all__ = ["CONFIGS"]

CONFIGS: dict[str, CoreConfig] = {
    "default": CoreConfig(),
    "tight": CoreConfig(queue_depth=2, token_capacity=1),
    "block4": CoreConfig(
        block=4,
        uop_buffer=1 << 10,
        inp_buffer=1 << 10,
        wgt_buffer=1 << 10,
        acc_buffer=4 << 10,
        param_depth=8,
        queue_depth=4,
        token_capacity=3,
    ),
    "batch2": CoreConfig(
        batch=2,
        block=8,
        uop_buffer=2 << 10,
        inp_buffer=2 << 10,
        wgt_buffer=4 << 10,
        acc_buffer=16 << 10,
        param_depth=16,
        queue_depth=3,
        token_capacity=2,
        data_bits=128,
        mac_body="packed16",
    ),
    "block32": CoreConfig(
        block=32,
        uop_buffer=4 << 10,
        inp_buffer=8 << 10,
        wgt_buffer=64 << 10,
        acc_buffer=32 << 10,
        param_depth=4,
        queue_depth=8,
        token_capacity=15,
        burst_beats=256,
        requant_lanes=2,
    ),
}
