"""A bar on the terminal while a model is compiled."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]


@contextmanager
def progress_bar() -> Iterator[Callable[[str], None] | None]:
    """What `compile` takes as `progress`: a bar on stderr where that is a terminal and rich is
    installed, else None."""
    if not sys.stderr.isatty():
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield None
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)

        def tell(text: str) -> None:
            bar.update(task, description=text, completed=getattr(text, "share", 0.0))

        yield tell
