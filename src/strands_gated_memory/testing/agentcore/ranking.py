"""Ranks texts by the cosine of their sentence vectors, and turns a cosine into the service's kind of score."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LOWEST_SCORE = 0.35
HIGHEST_SCORE = 0.50
_COSINE_DECIMALS = 6
_DIMENSIONS = 384


class SentenceEncoder(Protocol):
    """Turns texts into vectors."""

    def encode(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return one L2-normalised vector per text, as an array of shape (len(texts), dimensions)."""


class HashingEncoder:
    """A sentence encoder without a model: hashed bags of character trigrams, the same on every machine.

    For tests that need some order by similarity, quickly. It knows no meaning: "cat" and "feline" are far apart.
    """

    def encode(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return one L2-normalised float32 vector of 384 numbers per text; case is ignored."""
        import numpy as np

        vectors = np.zeros((len(texts), _DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(texts):
            padded = f"  {text.casefold()} "
            for start in range(len(padded) - 2):
                trigram = padded[start : start + 3].encode("utf-8", "surrogatepass")
                vectors[row, zlib.crc32(trigram) % _DIMENSIONS] += 1.0
        unit: NDArray[Any] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


def score_of(cosine: float) -> float:
    """Return a score for a cosine, in the narrow band in which the service's scores were seen.

    `0.35 + 0.15 * ((1 + cosine) / 2) ** 2`: rises with the cosine, 0.35 at -1, 0.3875 at 0, 0.50 at 1. So the
    order is by similarity, and hardly any threshold tells a good record from a bad one.
    """
    part = (1.0 + min(1.0, max(-1.0, cosine))) / 2.0
    return LOWEST_SCORE + (HIGHEST_SCORE - LOWEST_SCORE) * part**2


class Ranker:
    """Remembers the vector of every text it has seen. The encoder is never called twice at once.

    Args:
        encoder: None loads the package's own at the first use; a failure to load is raised, nothing stands in.
    """

    def __init__(self, encoder: SentenceEncoder | None) -> None:
        self._encoder = encoder
        self._vectors: dict[str, NDArray[np.float64]] = {}
        self._lock = threading.Lock()

    def cosines(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the cosine of each text with the query, rounded to six decimals so that ties are ties.

        Raises:
            ValueError: The encoder returned another number of vectors than texts.
        """
        if not texts:
            return []
        import numpy as np

        with self._lock:
            new = [text for text in dict.fromkeys([query, *texts]) if text not in self._vectors]
            if new:
                rows = np.asarray(self._loaded().encode(new), dtype=np.float64)
                if rows.ndim != 2 or len(rows) != len(new):  # noqa: PLR2004 - one row per text
                    raise ValueError(f"the encoder returned shape {rows.shape} for {len(new)} texts")
                self._vectors.update(zip(new, rows, strict=True))
            products = np.stack([self._vectors[text] for text in texts]) @ self._vectors[query]
        return [round(float(product), _COSINE_DECIMALS) for product in products]

    def _loaded(self) -> SentenceEncoder:
        if self._encoder is None:
            from strands_gated_memory.embedded.encoder import default_encoder

            self._encoder = default_encoder()
        return self._encoder
