"""Random programs on all simulators: ``python -m programs --n 1000 --devices fsim,tsim``.

Every program runs on the reference, in turn and in shuffled order, and on each device; status,
DRAM and on-chip memories must be equal. The memory behind the RTL has random latency and
back-pressure. Prints what the programs covered; exits with 1 and the
listing of the first program that differs.
"""

import argparse
import sys
import time
from collections import Counter

from engines import FACTORIES, Engine, engine

from programs.compare import differences, state_after
from programs.configs import CONFIGS
from programs.coverage import missing, table
from programs.generate import Program, generate
from programs.trials import memory_of
from vitral.program import Dram, Launch, OnChip, Outcome
from vitral.sim.reference import Reference
from vitral.sim.rtl import RtlSimulator


class _Shuffled:
    """The reference in an order drawn from a seed."""

    def __init__(self, program: Program, seed: int) -> None:
        self.reference = Reference(program.config)
        self.seed = seed

    def run(self, launch: Launch, dram: Dram, *, onchip: OnChip | None = None) -> Outcome:
        return self.reference.run(launch, dram, onchip=onchip, order_seed=self.seed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="programs", description=__doc__)
    parser.add_argument("--n", type=int, default=1000, help="programs")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--length", type=int, help="instructions per program, about")
    parser.add_argument("--devices", default="fsim", help=f"of {', '.join(FACTORIES)}")
    parser.add_argument("--configs", default=",".join(CONFIGS), help="comma-separated names")
    parser.add_argument("--orders", type=int, default=1, help="shuffled orders of the reference")
    parser.add_argument("--least", type=int, default=0, help="fail when anything came less often")
    return parser.parse_args()


def _devices(names: str, program: Program, orders: int) -> dict[str, Engine]:
    devices: dict[str, Engine] = {
        f"reference in order {seed}": _Shuffled(program, seed) for seed in range(orders)
    }
    return devices | {name: engine(name, program.config) for name in names.split(",") if name}


def _check(program: Program, name: str, devices: str, orders: int) -> bool:
    wanted = state_after(program, engine("reference", program.config))
    lines = [] if wanted[0].ok else [f"reference: {wanted[0].message}"]
    for device, simulator in _devices(devices, program, orders).items():
        if isinstance(simulator, RtlSimulator):
            simulator.memory_model = memory_of(program.seed)
        found = differences(state_after(program, simulator), wanted)
        lines += [f"{device}: {line}" for line in found]
    if lines:
        print(f"seed {program.seed}, configuration {name}:", *lines, program.text, sep="\n")
    return not lines


def main() -> int:
    options = _arguments()
    names = options.configs.split(",")
    counts: Counter[str] = Counter()
    insns, start = 0, time.perf_counter()
    for seed in range(options.seed, options.seed + options.n):
        name = names[seed % len(names)]
        program = generate(seed, CONFIGS[name], length=options.length)
        if not _check(program, name, options.devices, options.orders):
            return 1
        counts += program.coverage
        insns += len(program.words)
    seconds = time.perf_counter() - start
    print(table(counts))
    rare = missing(counts, options.least)
    print(f"{options.n} programs, {insns} instructions, {seconds:.1f} s: all equal")
    if rare:
        print(f"fewer than {options.least} times:", *rare, sep="\n")
    return 1 if rare else 0


if __name__ == "__main__":
    sys.exit(main())
