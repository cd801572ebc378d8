"""Bitstreams: what is built for a target, by which tool, and what came out.

A `Plan` is all that goes into a build, as data with a digest; a `Manifest` lies beside every
bitstream, names the plan and the core's configuration, and is what the runtime checks before it
touches an FPGA. Tools are backends (`vitral.bitstream.backends`), imported when they are used.
"""

from vitral.bitstream.manifest import Manifest
from vitral.bitstream.plan import Plan

__all__ = ["Manifest", "Plan"]
