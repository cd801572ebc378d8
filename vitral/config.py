"""Core parameters: what a user chooses (`CoreConfig`) and what follows from it (`CoreLayout`)."""

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from functools import cached_property

from vitral.errors import ConfigError

__all__ = ["CoreConfig", "CoreLayout", "ISA_VERSION"]

ISA_VERSION = 2
"""Number of the Vitral profile; part of the configuration digest."""

INP_BYTES = 1
WGT_BYTES = 1
ACC_BYTES = 4
UOP_BYTES = 4
INSN_BYTES = 16
PARAM_LANE_BYTES = 16

_ARCHITECTURE = (
    "batch",
    "block",
    "uop_buffer",
    "inp_buffer",
    "wgt_buffer",
    "acc_buffer",
    "param_depth",
    "queue_depth",
    "token_capacity",
)


def _log2(value: int) -> int:
    return value.bit_length() - 1


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


@dataclass(frozen=True, kw_only=True)
class CoreConfig:
    """What a user chooses about a core. Defaults are VTA's 1x16x16 configuration.

    Parameters
    ----------
    batch, block : int
        Shape of the array: an input element is int8 (batch, block), a weight element int8
        (block, block), an accumulator element int32 (batch, block).
    uop_buffer, inp_buffer, wgt_buffer, acc_buffer : int
        On-chip memory sizes in bytes.
    param_depth : int
        Entries of the requantisation parameter memory (one entry per channel block).
    queue_depth : int
        Instructions each of the three stage queues holds.
    token_capacity : int
        Tokens each of the four dependency counters holds.
    data_bits, addr_bits : int
        Width of the memory port's data and address.
    burst_beats : int
        Longest burst on the memory port, in beats: up to 16 (AXI3) or 256 (AXI4).
    outstanding : int
        Bursts in flight at most, each for reads and for writes.
    acc_banks : int
        Banks of the accumulator memory (selected by the top address bits).
    requant_lanes : int
        Lanes that the requantiser takes per cycle, a power of two up to the bytes that the store
        stage hands over per cycle (the smaller of beat and OUT element); 0 for that many. Fewer
        save multipliers and memory blocks, and make a requantising STORE take more cycles.
    mac_body : str
        How int8 products are made: "plain", one per multiplier, which simulates fast, or
        "packed16", two per DSP48E1 (block 8 or more). Bytes and cycles are the same.

    Raises
    ------
    ConfigError
        When a value cannot be built; the message has the numbers.
    """

    batch: int = 1
    block: int = 16
    uop_buffer: int = 32 << 10
    inp_buffer: int = 32 << 10
    wgt_buffer: int = 256 << 10
    acc_buffer: int = 128 << 10
    param_depth: int = 128
    queue_depth: int = 512
    token_capacity: int = 1023
    data_bits: int = 64
    addr_bits: int = 32
    burst_beats: int = 16
    outstanding: int = 8
    acc_banks: int = 4
    requant_lanes: int = 0
    mac_body: str = "plain"

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if item.type is int and (not isinstance(value, int) or isinstance(value, bool)):
                raise ConfigError(f"{item.name} must be an int, got {value!r}")
        self._need("batch", self.batch in (1, 2, 4), "1, 2 or 4")
        self._need("block", self.block in (4, 8, 16, 32), "4, 8, 16 or 32")
        for name in ("uop_buffer", "inp_buffer", "wgt_buffer", "acc_buffer"):
            self._need(name, _is_power_of_two(getattr(self, name)), "a power of two in bytes")
        self._need("param_depth", self.param_depth in (2 << n for n in range(15)), "2**n, 2..32768")
        self._need("queue_depth", 2 <= self.queue_depth <= 4096, "2..4096 instructions")
        self._need("token_capacity", 1 <= self.token_capacity <= 65535, "1..65535 tokens")
        self._need("data_bits", self.data_bits in (64, 128, 256, 512), "64, 128, 256 or 512 bits")
        self._need("addr_bits", 32 <= self.addr_bits <= 64, "32..64 bits")
        self._need("burst_beats", self.burst_beats in (2**n for n in range(9)), "2**n, 1..256")
        self._need("outstanding", 1 <= self.outstanding <= 32, "1..32 bursts")
        self._need("acc_banks", self.acc_banks in (1, 2, 4), "1, 2 or 4 banks")
        self._need("mac_body", self.mac_body in ("plain", "packed16"), '"plain" or "packed16"')
        if self.mac_body == "packed16" and self.block < 8:
            raise ConfigError(f"mac_body packed16 needs a block of 8 or more, got {self.block}")
        burst_bytes = self.burst_beats * self.data_bits // 8
        if burst_bytes > 4096:
            raise ConfigError(
                f"burst_beats {self.burst_beats} x {self.data_bits // 8} bytes = {burst_bytes}"
                " bytes, a burst may not exceed a page of 4096; use fewer beats"
            )
        layout = self.layout
        lanes = [2**n for n in range(layout.granule_bytes.bit_length())]
        if self.requant_lanes not in (0, *lanes):
            raise ConfigError(
                f"requant_lanes must be one of {lanes} or 0 for the most, got {self.requant_lanes};"
                f" the store stage hands over {layout.granule_bytes} bytes per cycle"
            )
        for name in ("uop", "inp", "wgt", "acc"):
            depth = getattr(layout, f"{name}_depth")
            if depth < 2 * self.acc_banks:
                raise ConfigError(
                    f"{name}_buffer {getattr(self, f'{name}_buffer')} bytes holds {depth} elements"
                    f" of {getattr(layout, f'{name}_bytes')} bytes, needs {2 * self.acc_banks}"
                )
            if depth > 1 << 16:
                raise ConfigError(
                    f"{name}_buffer holds {depth} elements, the 16-bit sram_base reaches 65536"
                )

    def _need(self, name: str, good: bool, what: str) -> None:
        if not good:
            raise ConfigError(f"{name} must be {what}, got {getattr(self, name)!r}")

    @cached_property
    def layout(self) -> "CoreLayout":
        """Everything that follows from this configuration."""
        return CoreLayout(self)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of all that changes what a program means on this core.

        Two cores with one digest run the same modules with the same bytes; bus width, burst
        limit, banking and the requantiser's lanes are left out, as they change cycles only, and the
        body of the multipliers, which changes nothing.
        """
        values = asdict(self)
        text = json.dumps({"isa": ISA_VERSION} | {name: values[name] for name in _ARCHITECTURE})
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def digest32(self) -> int:
        """First 32 bits of `digest`, as the core's register shows them."""
        return int(self.digest[:8], 16)

    def to_dict(self) -> dict[str, int | str]:
        """Plain values by field name, for JSON."""
        return asdict(self)


class CoreLayout:
    """Sizes derived from a `CoreConfig`: element bytes, depths (elements) and index bits.

    `granule_bytes` is what the store stage hands over per cycle, `requant_lanes` what the
    requantiser takes. An entry of the parameter memory lies in `param_rows` rows of
    `param_row_bytes`, each with the parameters of the lanes of one cycle, or a beat if that is
    longer; `param_row_bits` numbers the rows.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        self.insn_bytes = INSN_BYTES
        self.uop_bytes = UOP_BYTES
        self.inp_bytes = config.batch * config.block * INP_BYTES
        self.wgt_bytes = config.block * config.block * WGT_BYTES
        self.acc_bytes = config.batch * config.block * ACC_BYTES
        self.out_bytes = config.batch * config.block
        self.acc8_bytes = config.batch * config.block
        self.param_bytes = config.block * PARAM_LANE_BYTES
        self.uop_depth = config.uop_buffer // self.uop_bytes
        self.inp_depth = config.inp_buffer // self.inp_bytes
        self.wgt_depth = config.wgt_buffer // self.wgt_bytes
        self.acc_depth = config.acc_buffer // self.acc_bytes
        self.param_depth = config.param_depth
        self.uop_index_bits = _log2(self.uop_depth)
        self.inp_index_bits = _log2(self.inp_depth)
        self.wgt_index_bits = _log2(self.wgt_depth)
        self.acc_index_bits = _log2(self.acc_depth)
        self.param_index_bits = _log2(self.param_depth)
        self.beat_bytes = config.data_bits // 8
        self.granule_bytes = min(self.out_bytes, self.beat_bytes)
        self.requant_lanes = config.requant_lanes or self.granule_bytes
        self.param_row_bytes = max(
            self.beat_bytes, min(self.requant_lanes, config.block) * PARAM_LANE_BYTES
        )
        self.param_rows = self.param_bytes // self.param_row_bytes
        self.param_row_bits = _log2(self.param_depth * self.param_rows)
        self.macs_per_cycle = config.batch * config.block * config.block
