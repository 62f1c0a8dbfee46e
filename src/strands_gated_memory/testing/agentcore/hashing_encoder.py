"""A sentence encoder without a model: texts that share letters in a row are near."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

DIMENSIONS = 384


class HashingEncoder:
    """Hashed bags of character trigrams, the same on every machine and in every process.

    For tests that need some order by similarity, quickly. It knows no meaning: "cat" and "feline" are far apart.
    """

    def encode(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return one L2-normalised float32 vector of 384 numbers per text; case is ignored."""
        import numpy as np

        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(texts):
            padded = f"  {text.casefold()} "
            for start in range(len(padded) - 2):
                vectors[row, zlib.crc32(padded[start : start + 3].encode("utf-8", "surrogatepass")) % DIMENSIONS] += 1.0
        unit: NDArray[Any] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit
