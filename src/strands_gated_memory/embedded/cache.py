"""A bounded store of embeddings by text, shared by threads.

Keys are digests, so no text is kept. It never grows past its limit and never changes a vector.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]


def key_of(text: str) -> bytes:
    """Return the digest a text is stored under (blake2b, 16 bytes); lone surrogates count as themselves."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class VectorCache:
    """The least recently used vectors go first.

    Args:
        entries: How many vectors to keep; 0 keeps none. One takes about 1.7 kB.
    """

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._vectors: OrderedDict[bytes, Vector] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._vectors)

    def get(self, keys: Iterable[bytes]) -> dict[bytes, Vector]:
        """Return the vectors that are there, and mark them as used."""
        found = {}
        with self._lock:
            for key in keys:
                vector = self._vectors.get(key)
                if vector is not None:
                    self._vectors.move_to_end(key)
                    found[key] = vector
        return found

    def put(self, vectors: Mapping[bytes, Vector]) -> None:
        """Keep these vectors, and forget the oldest beyond the limit."""
        with self._lock:
            for key, vector in vectors.items():
                self._vectors[key] = vector
                self._vectors.move_to_end(key)
            while len(self._vectors) > self._entries:
                self._vectors.popitem(last=False)
