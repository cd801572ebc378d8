"""`python -m fuzz`: many random graphs, or many broken models, and the ones that fail kept."""

import argparse
import sys
from functools import partial
from pathlib import Path

from fuzz.keep import check_seed, replay
from fuzz.malformed import check_broken
from fuzz.workers import run_all

__all__ = ["main"]

_TIMEOUT = {"fsim": 60.0, "tsim": 600.0, "reference": 600.0}
_MALFORMED_TIMEOUT = 20.0


def main() -> int:
    """0 when nothing failed, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--n", type=int, default=200, help="graphs or models (200)")
    parser.add_argument("--seed", type=int, default=0, help="the first one's (0)")
    parser.add_argument("--device", choices=list(_TIMEOUT), default="fsim")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--out", type=Path, default=Path("../build/fuzz"), help="for failures")
    parser.add_argument("--malformed", action="store_true", help="broken models")
    parser.add_argument("--replay", type=Path, metavar="FILE.onnx", help="one that failed")
    args = parser.parse_args()
    if args.replay:
        return replay(args.replay, args.device)
    seeds = range(args.seed, args.seed + args.n)
    if args.malformed:
        task, timeout, what = check_broken, _MALFORMED_TIMEOUT, "broken models"
    else:
        # the oracle is judged once, in the run on fsim
        task = partial(check_seed, device=args.device, out=args.out, judge=args.device == "fsim")
        timeout, what = _TIMEOUT[args.device], f"graphs on {args.device}"
    failed = 0
    results = run_all(task, seeds, jobs=args.jobs, timeout=timeout)
    for done, (seed, text) in enumerate(results, start=1):
        if text is not None:
            failed += 1
            print(text if f"seed {seed}" in text else f"seed {seed}: {text}", flush=True)
        if done % 500 == 0 or done == args.n:
            print(f"{done} of {args.n} {what}, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
