"""Texts in, unit vectors out: the sentence encoder, on onnxruntime's CPU provider.

A text's vector depends on the text alone, never on what else was in the call (float32 throughout, padding
masked). onnxruntime, tokenizers and numpy are imported at first use, onnxruntime with its telemetry off.
Safe to share between threads, across a fork (a child loads its own session) and at exit.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]

DATA = Path(__file__).parent / "data"
"""Where the package keeps `encoder.onnx`, `tokenizer.json` and the heads."""
MAX_TOKENS = 256
"""Longest text, in tokens with the two special ones; the rest of a longer text is not read."""
BATCH_TOKENS = 512
"""Most tokens, padding included, in one run: bounds the memory of a call, whatever its size."""
PADDING_TOKENS = 16
"""Most padding in one run; about what a run costs besides its tokens."""
TRIM_TOKENS = 256
"""Tokens of one call from which on its freed memory goes back to the system at once (about 4 ms)."""
CACHE_ENTRIES = 4096
"""Vectors kept by default: about 7 MB."""
_CHARACTERS_PER_TOKEN = 32
"""A token is rarely longer; what lies beyond MAX_TOKENS times this is cut before tokenising."""


class VectorCache:
    """Vectors by the digests of their texts, so that no text is kept; the least recently used go first.

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
        with self._lock:
            there = {key: self._vectors[key] for key in keys if key in self._vectors}
            for key in there:
                self._vectors.move_to_end(key)
        return there

    def put(self, vectors: Mapping[bytes, Vector]) -> None:
        """Keep vectors whose keys are not there, and forget the oldest beyond the limit."""
        with self._lock:
            self._vectors.update(vectors)
            while len(self._vectors) > self._entries:
                self._vectors.popitem(last=False)


class _Model(NamedTuple):
    tokenizer: Any
    session: Any


class Encoder:
    """Turns texts into vectors; loads at first use.

    Args:
        path: A folder with `encoder.onnx` and `tokenizer.json`; None for the package's own.
        max_tokens: Longest text, in tokens; at most 256 for the package's own model.
        batch_tokens: Most tokens, padding included, per run of the model.
        cache_entries: How many vectors to remember by text; 0 for none.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        max_tokens: int = MAX_TOKENS,
        batch_tokens: int = BATCH_TOKENS,
        cache_entries: int = CACHE_ENTRIES,
    ) -> None:
        self._path = DATA if path is None else Path(path)
        self._max_tokens = max_tokens
        self._batch_tokens = batch_tokens
        self._cache_entries = cache_entries
        self._start()
        _encoders.add(self)

    def _start(self) -> None:
        self._model: _Model | None = None
        self._lock = threading.Lock()
        self._slot_count = max(1, _cpus() // 2)
        self._slots = threading.BoundedSemaphore(self._slot_count)
        self.cache = VectorCache(self._cache_entries)

    @property
    def is_loaded(self) -> bool:
        """Whether the model is in memory."""
        return self._model is not None

    def load(self) -> None:
        """Load the model now, in this thread.

        Raises:
            Exception: The files are missing or damaged; a later call tries again.
        """
        self._loaded()

    def encode(self, texts: Sequence[str]) -> Vector:
        """Return one vector per text.

        Args:
            texts: Any texts, empty ones included; all but the first `max_tokens` tokens of each are ignored.

        Returns:
            An array (len(texts), width), float32, each row of norm 1. Yours to change.

        Raises:
            TypeError: `texts` is a string.
            Exception: The model could not be loaded or run.
        """
        import numpy as np

        if isinstance(texts, str):
            raise TypeError("encode takes a sequence of texts, got one str; write encode([text])")
        # Lone surrogates count as themselves.
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        keys = [hashlib.blake2b(text, digest_size=16).digest() for text in encoded]
        vectors = self.cache.get(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if missing:
            fresh = dict(zip(missing, self._run(list(missing.values())), strict=True))
            self.cache.put(fresh)
            vectors.update(fresh)
        if not keys:
            return np.zeros((0, self.width), np.float32)
        return np.stack([vectors[key] for key in keys])

    @property
    def width(self) -> int:
        """The length of a vector."""
        return int(self._loaded().session.get_outputs()[0].shape[1])

    def _loaded(self) -> _Model:
        model = self._model
        if model is None:
            with self._lock:
                _refuse_at_exit()
                model = self._model
                if model is None:
                    model = self._model = _load(self._path, self._max_tokens)
        return model

    def _run(self, texts: list[str]) -> list[Vector]:
        import numpy as np

        model = self._loaded()
        limit = self._max_tokens * _CHARACTERS_PER_TOKEN
        with self._slots:
            _refuse_at_exit()
            # One text at a time: encode_batch starts a thread pool that does not survive a fork.
            ids = [model.tokenizer.encode(_valid(text[:limit])).ids for text in texts]
        rows: list[Vector] = [np.empty(0, np.float32)] * len(ids)
        for batch in _batches([len(row) for row in ids], self._batch_tokens):
            length = len(ids[batch[-1]])
            tokens = np.zeros((len(batch), length), np.int64)
            mask = np.zeros((len(batch), length), np.int64)
            for line, index in enumerate(batch):
                tokens[line, : len(ids[index])] = ids[index]
                mask[line, : len(ids[index])] = 1
            with self._slots:
                _refuse_at_exit()
                vectors = model.session.run(["sentence_embedding"], {"input_ids": tokens, "attention_mask": mask})[0]
            for line, index in enumerate(batch):
                rows[index] = vectors[line].copy()
        if sum(len(row) for row in ids) >= TRIM_TOKENS:
            _give_back()
        return rows

    def _settle(self, timeout_s: float) -> None:
        """Wait until no thread is inside the native libraries, or `timeout_s` is over for one of them."""
        if self._lock.acquire(timeout=timeout_s):
            self._lock.release()
        taken = [self._slots.acquire(timeout=timeout_s) for _ in range(self._slot_count)]
        for _ in filter(None, taken):
            self._slots.release()

    def _forget(self) -> None:
        """Start anew in a forked child, where the session's threads do not exist."""
        if self._model is not None:
            # Its destructor would wait for those threads for ever, at exit too: keep it alive past the exit.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._model))
        self._start()


def _load(path: Path, max_tokens: int) -> _Model:
    onnxruntime = _import_onnxruntime()
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer.enable_truncation(max_tokens)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = min(2, _cpus())
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_cpu_mem_arena = False  # the arena never shrinks: one long batch would stay resident
    options.enable_mem_pattern = False
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED  # folds the weights
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path / "encoder.onnx"), options, providers=["CPUExecutionProvider"])
    _give_back()
    return _Model(tokenizer, session)


def _import_onnxruntime() -> Any:
    """Import onnxruntime without its telemetry, unless ORT_DISABLE_TELEMETRY is set to something else.

    Official builds send events to Microsoft by default (its Privacy.md), from a thread that also makes a
    forked child hang at exit. What decides over a user's private text opens no connection.
    """
    off = os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1") == "1"
    import onnxruntime

    if off:
        onnxruntime.disable_telemetry_events()  # all that is left to do where it was imported before
    return onnxruntime


def _batches(lengths: list[int], limit: int) -> Iterator[list[int]]:
    """Yield batches of indices, shortest texts first.

    A batch's padded size stays within `limit` (or it is one text), and its padding within PADDING_TOKENS:
    a second run costs less than the arithmetic on more padding.
    """
    batch: list[int] = []
    tokens = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        padded = (len(batch) + 1) * lengths[index]
        if batch and (padded > limit or padded - tokens - lengths[index] > PADDING_TOKENS):
            yield batch
            batch, tokens = [], 0
        batch.append(index)
        tokens += lengths[index]
    if batch:
        yield batch


def _valid(text: str) -> str:
    """Return the text with "?" for lone surrogates, which the tokenizer refuses."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _give_back() -> None:
    """Return freed memory to the system; else glibc's heap keeps 110 MB after loading, 60 MB after long batches."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # not glibc
        return


def _cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


_encoders: weakref.WeakSet[Encoder] = weakref.WeakSet()
_default: Encoder | None = None
_default_lock = threading.Lock()


def default_encoder() -> Encoder:
    """Return the process's shared encoder of the package's own model; it loads at first use."""
    global _default  # noqa: PLW0603 - one per process is the point
    with _default_lock:
        if _default is None:
            _default = Encoder()
        return _default


_exiting = False
_EXIT_PATIENCE_S = 5.0


def _refuse_at_exit() -> None:
    if _exiting and threading.current_thread().daemon:
        raise RuntimeError("the process is ending")


def _at_exit() -> None:
    """Let daemon threads leave native code and keep them out: ended inside it, they abort the process."""
    global _exiting  # noqa: PLW0603 - it ends once
    _exiting = True
    for encoder in list(_encoders):
        encoder._settle(_EXIT_PATIENCE_S)


def _after_fork() -> None:
    global _default_lock  # noqa: PLW0603 - another thread may have held it when the process forked
    _default_lock = threading.Lock()
    for encoder in list(_encoders):
        encoder._forget()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
