"""Where the cycles of a run went, for people: traces, and a page."""

from vitral.report.events import trace_events
from vitral.report.gtkwave import write_gtkwave

__all__ = ["trace_events", "write_gtkwave"]
