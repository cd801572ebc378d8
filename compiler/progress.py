"""What a compilation is doing, and how far it has come."""

from collections.abc import Callable

__all__ = ["Doing", "Tell"]


class Doing(str):
    """A few words about what is done next; `share` is the part of all work, 0 to 1, done so far.

    Shares are rough: most of the time goes into choosing the tilings of layers.
    """

    share: float

    def __new__(cls, text: str, share: float) -> "Doing":
        doing = super().__new__(cls, text)
        doing.share = share
        return doing


Tell = Callable[[Doing], None]
