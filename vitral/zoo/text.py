"""Images of text for networks that read, drawn from a seed."""

import numpy as np
import numpy.typing as npt

from vitral.zoo.subjects import MissingPackageError

__all__ = ["text_image"]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def text_image(height: int, width: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Words in lines on paper of uneven brightness, float32 (1, 3, height, width) in -1 ... 1.

    Raises
    ------
    MissingPackageError
        When pillow, which draws letters, is not installed.
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ModuleNotFoundError:
        raise MissingPackageError(
            "drawing text needs pillow; pip install 'vitral[networks]'"
        ) from None
    rng = np.random.default_rng([seed, 0x7E87])
    page = Image.new("RGB", (width, height), tuple(int(v) for v in rng.integers(200, 256, 3)))
    draw = ImageDraw.Draw(page)
    size = min(height * 2 // 3, 32)
    for top in range((height % size) // 4, height - size + 1, size + size // 3):
        font = ImageFont.load_default(int(rng.integers(size * 2 // 3, size + 1)))
        words = [
            "".join(rng.choice(list(_LETTERS), rng.integers(2, 9))) for _ in range(width // 40)
        ]
        ink = tuple(int(v) for v in rng.integers(0, 90, 3))
        draw.text((int(rng.integers(0, width // 8)), top), " ".join(words), ink, font)
    light = rng.normal(0, 4, (height, width, 1))
    pixels = np.clip(np.asarray(page, np.float32) + light, 0, 255)
    return ((pixels / 127.5 - 1).transpose(2, 0, 1)[None]).astype(np.float32)
