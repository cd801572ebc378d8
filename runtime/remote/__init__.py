"""A device served to other machines: `Server` on the board, `RemoteDevice` on the host."""

from vitral.runtime.remote.limits import Limits
from vitral.runtime.remote.server import Server

__all__ = ["Limits", "Server"]
