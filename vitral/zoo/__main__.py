"""`python -m vitral.zoo NAME -o FILE.onnx`: writes a network of the zoo."""

import argparse
import sys
from pathlib import Path

from vitral.zoo.catalogue import NETWORKS, build

__all__ = ["main"]


def main() -> int:
    """Build one network and write it."""
    parser = argparse.ArgumentParser(prog="python -m vitral.zoo", description=__doc__)
    parser.add_argument("name", choices=NETWORKS, metavar="NAME", help=", ".join(NETWORKS))
    parser.add_argument("-o", "--output", metavar="FILE.onnx", help="default: NAME.onnx")
    parser.add_argument("--seed", type=int, default=0, help="of weights and calibration")
    args = parser.parse_args()
    data = build(args.name, args.seed).SerializeToString()
    Path(args.output or f"{args.name}.onnx").write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
