"""A Vivado block design: cells, nets, buses, addresses; refuses what does not fit together."""

from dataclasses import dataclass, field

from vendors.blocks import BLOCKS, FAMILIES, Block, Shape
from vendors.tcl import Refused, flags

__all__ = ["BlockDesign", "Cell"]


@dataclass
class Cell:
    """A block in the design."""

    block: Block
    values: dict[str, str] = field(default_factory=dict)

    @property
    def shape(self) -> Shape:
        defaults = {name: default for name, (default, _) in self.block.parameters.items()}
        return self.block.shape(defaults | self.values)


class BlockDesign:
    """What has been put together; each public method is a Tcl command.

    `catalogue` has the blocks by name, `part` the FPGA; `nets` are lists of pins, `buses` pairs of
    master and slave, `addresses` (offset, bytes) by (space, segment).
    """

    def __init__(self) -> None:
        self.part = ""
        self.catalogue: dict[str, Block] = {}
        self.cells: dict[str, Cell] = {}
        self.nets: list[list[str]] = []
        self.buses: list[tuple[str, str]] = []
        self.external: list[str] = []
        self.addresses: dict[tuple[str, str], tuple[int, int]] = {}

    def create_bd_cell(self, *args: str) -> str:
        found, (name,) = flags(args, ["-type", "-vlnv"])
        if found["-vlnv"] not in self.catalogue or name in self.cells:
            raise Refused(f"no block {found['-vlnv']}, or {name} is there already")
        family = FAMILIES.get(found["-vlnv"].split(":")[2], "")
        if not self.part.startswith(family):
            raise Refused(f"{found['-vlnv']} is not for {self.part}")
        self.cells[name] = Cell(self.catalogue[found["-vlnv"]])
        return name

    def get_bd_cells(self, name: str) -> str:
        if name not in self.cells:
            raise Refused(f"no cell {name}")
        return name

    def _shape(self, name: str) -> tuple[Shape, str]:
        cell, _, rest = name.partition("/")
        return self.cells[self.get_bd_cells(cell)].shape, rest

    def get_bd_pins(self, name: str) -> str:
        shape, pin = self._shape(name)
        if pin not in shape.pins:
            raise Refused(f"no pin {name}; there are {', '.join(sorted(shape.pins))}")
        return name

    def get_bd_intf_pins(self, name: str) -> str:
        shape, bus = self._shape(name)
        if bus not in shape.buses and bus not in shape.externals:
            raise Refused(f"no interface {name}; there are {', '.join(sorted(shape.buses))}")
        return name

    def connect_bd_net(self, *pins: str) -> None:
        kinds = {name: self._pin(self.get_bd_pins(name)) for name in pins}
        if [direction for direction, _, _ in kinds.values()].count("out") != 1:
            raise Refused(f"a net with not one driver: {', '.join(pins)}")
        if len({kind for _, kind, _ in kinds.values()}) != 1:
            raise Refused(f"a net of different kinds: {kinds}")
        taken = {name for net in self.nets for name in net}
        if taken & {name for name, (direction, _, _) in kinds.items() if direction == "in"}:
            raise Refused(f"connected twice: {sorted(taken & set(pins))}")
        self.nets.append(list(pins))

    def _pin(self, name: str) -> tuple[str, str, bool]:
        shape, pin = self._shape(name)
        return shape.pins[pin]

    def connect_bd_intf_net(self, one: str, other: str) -> None:
        taken = {name for pair in self.buses for name in pair}
        if {one, other} & taken:
            raise Refused(f"connected twice: {one} {other}")
        roles = [self._bus(name)[0] for name in (one, other)]
        if sorted(roles) != ["master", "slave"]:
            raise Refused(f"{one} and {other} are {roles}")
        self.buses.append((one, other) if roles[0] == "master" else (other, one))

    def _bus(self, name: str) -> tuple[str, str, str, int]:
        shape, bus = self._shape(name)
        return shape.buses[bus]

    def make_bd_intf_pins_external(self, name: str) -> None:
        shape, bus = self._shape(name)
        if bus not in shape.externals:
            raise Refused(f"{name} is no interface of the part's own pins")
        self.external.append(name)

    def get_bd_addr_spaces(self, name: str) -> str:
        shape, space = self._shape(name)
        if space not in shape.spaces:
            raise Refused(f"no address space {name}; there are {', '.join(shape.spaces)}")
        return name

    def get_bd_addr_segs(self, name: str) -> str:
        shape, segment = self._shape(name)
        if segment not in shape.segments:
            raise Refused(f"no segment {name}; there are {', '.join(shape.segments)}")
        return name

    def assign_bd_address(self, *args: str) -> None:
        valued = ["-offset", "-range", "-target_address_space"]
        found, (segment,) = flags(args, valued, ["-force"])
        space = found["-target_address_space"]
        offset, size = int(found["-offset"], 0), int(found["-range"], 0)
        if size < 4096 or size & (size - 1) or offset % size:
            raise Refused(f"{segment}: {size} bytes at {offset:#x} cannot be decoded")
        if not self._reaches(space, segment):
            raise Refused(f"{space} does not reach {segment}")
        for (other, what), (start, count) in self.addresses.items():
            if other == space and start < offset + size and offset < start + count:
                raise Refused(f"{segment} and {what} overlap")
        shape, name = self._shape(segment)
        if size > shape.segments[name][1]:
            raise Refused(f"{segment} has {shape.segments[name][1]} bytes, not {size}")
        self.addresses[space, segment] = (offset, size)

    def _reaches(self, space: str, segment: str) -> bool:
        """Whether the space's bus leads, through interconnects, to the segment's."""
        shape, name = self._shape(space)
        at = [f"{space.partition('/')[0]}/{shape.spaces[name]}"]
        shape, name = self._shape(segment)
        goal = f"{segment.partition('/')[0]}/{shape.segments[name][0]}"
        while at:
            there = dict(self.buses).get(at.pop())
            if there == goal:
                return True
            cell = (there or "").partition("/")[0]
            if cell and self.cells[cell].block is BLOCKS["axi_interconnect"]:
                masters = [n for n, b in self.cells[cell].shape.buses.items() if b[0] == "master"]
                at += [f"{cell}/{bus}" for bus in masters]
        return False

    def validate_bd_design(self) -> None:
        connected = {name for net in self.nets for name in net}
        buses = {name for pair in self.buses for name in pair} | set(self.external)
        for cell, content in self.cells.items():
            shape = content.shape
            for pin, (direction, _, needed) in shape.pins.items():
                if direction == "in" and needed and f"{cell}/{pin}" not in connected:
                    raise Refused(f"nothing drives {cell}/{pin}")
            for bus in (*shape.buses, *shape.externals):
                if f"{cell}/{bus}" not in buses:
                    raise Refused(f"nothing is connected to {cell}/{bus}")
        for pair in self.buses:
            self._check_pair(*pair)
        for cell, content in self.cells.items():
            for segment in content.shape.segments:
                if f"{cell}/{segment}" not in {name for _, name in self.addresses}:
                    raise Refused(f"{cell}/{segment} has no address")

    def _check_pair(self, master: str, slave: str) -> None:
        clocks = {
            self._net(f"{name.partition('/')[0]}/{self._bus(name)[1]}") for name in (master, slave)
        }
        if len(clocks) != 1:
            raise Refused(f"{master} and {slave} have different clocks")
        protocols = {self._bus(name)[2] for name in (master, slave)} - {"any"}
        if len(protocols) > 1:
            raise Refused(f"{master} and {slave} speak {sorted(protocols)}")

    def _net(self, pin: str) -> int:
        return next(n for n, net in enumerate(self.nets) if pin in net)

    def handoff(self) -> str:
        """The part of a handoff file that says what is where."""
        modules = "".join(
            f'<MODULE INSTANCE="{name}" VLNV="{cell.block.vlnv}"/>'
            for name, cell in self.cells.items()
        )
        ranges = "".join(
            f'<MEMRANGE INSTANCE="{segment.split("/")[0]}" MEMTYPE="REGISTER" BASEVALUE="{low:#x}"'
            f' HIGHVALUE="{low + size - 1:#x}"/>'
            for (space, segment), (low, size) in self.addresses.items()
            if space.startswith("ps/")
        )
        return f"<EDKSYSTEM><MODULES>{modules}</MODULES><MEMORYMAP>{ranges}</MEMORYMAP></EDKSYSTEM>"
