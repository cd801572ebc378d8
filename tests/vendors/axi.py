"""What a complete AXI interface has (IHI 0022: AXI4, AXI4-Lite)."""

from collections.abc import Mapping

from vendors.tcl import Refused

__all__ = ["check_bus"]

ADDRESS = {"addr": None, "prot": 3, "valid": 1, "ready": 1}
FULL = {"len": 8, "size": 3, "burst": 2, "lock": 1, "cache": 4, "qos": 4, "region": 4}
OPTIONAL = {"lock", "cache", "qos", "region"}
DATA = {
    "w": {"data": None, "strb": None, "valid": 1, "ready": 1, "last": 1},
    "b": {"resp": 2, "valid": 1, "ready": 1},
    "r": {"data": None, "resp": 2, "valid": 1, "ready": 1, "last": 1},
}
TO_MASTER = {"awready", "wready", "arready", "bresp", "bvalid", "bid", "rdata", "rresp", "rlast"}
TO_MASTER |= {"rvalid", "rid"}


def check_bus(name: str, ports: Mapping[str, tuple[str, int]], *, lite: bool, master: bool) -> None:
    """Refused unless `ports`, (direction "in" or "out", bits) by signal, are a whole interface."""
    wanted: dict[str, int | None] = {}
    for channel in ("aw", "ar"):
        fields = ADDRESS if lite else ADDRESS | FULL | {"id": None, "user": None}
        wanted |= {channel + signal: width for signal, width in fields.items()}
    for channel, fields in DATA.items():
        wanted |= {channel + signal: width for signal, width in fields.items()}
        if not lite and channel != "w":
            wanted[f"{channel}id"] = None
    if lite:
        del wanted["wlast"], wanted["rlast"]
    for signal, width in wanted.items():
        if signal not in ports:
            if signal[2:] in OPTIONAL | {"user"}:
                continue
            raise Refused(f"interface {name} has no {signal}")
        direction, bits = ports[signal]
        if direction != ("in" if (signal in TO_MASTER) == master else "out"):
            raise Refused(f"interface {name}: {signal} goes {direction}")
        if width is not None and bits != width:
            raise Refused(f"interface {name}: {signal} has {bits} bits, needs {width}")
    strange = sorted(set(ports) - set(wanted))
    if strange:
        raise Refused(f"interface {name}: {strange[0]} is no signal of it")
    _check_widths(name, ports, lite)


def _check_widths(name: str, ports: Mapping[str, tuple[str, int]], lite: bool) -> None:
    width = {signal: bits for signal, (_, bits) in ports.items()}
    if width["wdata"] != width["rdata"] or width["wstrb"] * 8 != width["wdata"]:
        raise Refused(f"interface {name}: data of {width['wdata']}, {width['rdata']} bits")
    if width["awaddr"] != width["araddr"]:
        raise Refused(f"interface {name}: addresses of different widths")
    if not lite and len({width[s] for s in ("awid", "bid", "arid", "rid")}) != 1:
        raise Refused(f"interface {name}: IDs of different widths")
    if width["wdata"] not in ((32, 64) if lite else (32, 64, 128, 256, 512, 1024)):
        raise Refused(f"interface {name}: data of {width['wdata']} bits")
