"""What the cycle model knows about the core's RTL: latencies and depths, each in one place.

All times are clock cycles. They follow from the pipelines that docs/core.md describes, and from
the signal diagrams in the docstrings under hw/; a change of a pipeline there is a change here.
"""

from dataclasses import dataclass

__all__ = ["CORE", "Timing"]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Latencies and depths of a core.

    Parameters
    ----------
    launch_to_block : int
        From the launch to the first instruction block being offered.
    beat_to_word : int
        From an R beat to the instruction that it completes.
    word_to_queue, queue : int
        From there into the queue of its stage, and through the queue.
    fetch_blocks : int
        Blocks of 64 bytes that fetch holds.
    fetch_ahead : int
        Instructions in the compute queue with which fetch lets others read first.
    command_to_burst : int
        From a LOAD's begin to its first burst.
    command_gap : int
        Least distance of two LOADs of an engine.
    beat_to_token : int
        From a LOAD's last R beat to its token being there for the next stage.
    beat_to_units : int
        From the last R beat of a LOAD of the compute or store stage to the next instruction.
    flights : int
        Instructions that the compute stage has begun and not retired.
    loop_to_retire : int
        From the last element operation of a GEMM, ALU or window instruction to its tokens.
    window_wait : int
        From the last element operation's issue to a CONFIG of the window.
    alu_pair : int
        Cycles of an ALU operation on two elements, which mostly lie in one bank of ACC.
    unit_switch : int
        Cycles in which the last element operation leaves its unit before another unit begins.
    turn_to_token : int
        From the begin of an instruction that does nothing but move tokens to its tokens.
    measure : int
        Least distance of two instructions of the store stage: each is looked at first.
    store_flights, store_jobs : int
        STOREs that are not acknowledged, and that still read ACC, at most.
    store_to_element : int
        From a STORE's begin to its first granule.
    store_to_address : int
        From a STORE's begin to its first burst.
    gather : int
        Elements read ahead of the granules.
    granule_to_bus, requant_to_bus : int
        From a granule leaving ACC to its W beat, plain and requantised.
    address_to_data : int
        From a write burst's address to its first W beat.
    ack_to_token, ack_to_burst : int
        From a B response to the STORE's token, and to the burst that takes its place.
    last_use : int
        From a STORE's last granule to the end of its need for parameters.
    finish : int
        From everything at rest to the end of the count.
    """

    launch_to_block: int = 2
    beat_to_word: int = 2
    word_to_queue: int = 1
    queue: int = 2
    fetch_blocks: int = 8
    fetch_ahead: int = 32
    command_to_burst: int = 2
    command_gap: int = 2
    beat_to_token: int = 3
    beat_to_units: int = 3
    flights: int = 8
    loop_to_retire: int = 7
    window_wait: int = 2
    alu_pair: int = 2
    unit_switch: int = 4
    turn_to_token: int = 2
    measure: int = 2
    store_flights: int = 16
    store_jobs: int = 2
    store_to_element: int = 3
    store_to_address: int = 2
    gather: int = 4
    granule_to_bus: int = 2
    requant_to_bus: int = 9
    address_to_data: int = 2
    ack_to_token: int = 3
    ack_to_burst: int = 2
    last_use: int = 2
    finish: int = 4


CORE = Timing()
"""The core in hw/."""

ENGINE_DEPTHS = (8, 4, 2)
"""LOADs in flight in the engines of the load, compute and store stage."""
