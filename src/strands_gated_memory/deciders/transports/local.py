"""strands-decider in this process: one call of its engine, no request. torch is imported at the first use."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.functions import outcome_of
from ...errors import ConfigurationError, DeciderRejected, DeciderTimeout, DeciderUnavailable, PromptTooLong
from ...runtime import threads
from ...runtime.clock import left
from ..shown import quoted
from .http import looks_too_long

DEFAULT_CHECKPOINT = "StrandsAgents/strands-decider-2B-qwen3.5-v1-2610"
"""The released 2B model. Its first use downloads about 4.5 GB, by strands-decider's own documentation."""

_RELOAD_AFTER_S = 60.0
"""After a failure to load, how long calls fail at once before another try."""

_CONFIG = "strands_decider_config.json"


class LocalEngine:
    """A strands-decider checkpoint, loaded once, on the best device there is.

    The window is strict: a prompt that does not fit is refused by the engine, never cut. See
    `catalog.strands_decider` for the arguments.
    """

    def __init__(self, checkpoint: str | None = None, device: str | None = None) -> None:
        self.checkpoint = checkpoint or DEFAULT_CHECKPOINT
        if importlib.util.find_spec("strands_decider") is None:
            raise ConfigurationError(
                'decider "strands-decider" needs the strands-decider package; run: '
                "pip install 'strands-gated-memory[strands-decider]', or from a clone: pip install '.[strands-decider]'"
            )
        looks_like_path = self.checkpoint.startswith((".", "/", "~", os.sep)) or self.checkpoint.count("/") > 1
        folder = Path(os.path.expanduser(self.checkpoint))
        try:
            exists, holds = folder.exists(), (folder / _CONFIG).is_file()
        except (OSError, ValueError):  # a name that no file can have
            exists, holds, looks_like_path = False, False, True
        looks_like_path = looks_like_path or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", self.checkpoint)
        if (looks_like_path or exists) and not holds:
            raise ConfigurationError(
                f"decider {quoted('strands-decider:' + self.checkpoint)}: there is no folder that holds {_CONFIG}"
            )
        if exists:
            self.checkpoint = str(folder)
        self.about: dict[str, Any] = {}
        self._device = device
        self._loading = threading.Lock()
        self._engine: Any = None
        self._failure: tuple[float, str] | None = None
        self._guard: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        threads.notice(self)

    def __repr__(self) -> str:
        return f"LocalEngine({os.path.basename(self.checkpoint.rstrip(os.sep))!r})"

    def after_fork(self) -> None:
        """Take new locks: a thread of the parent may have held them, and is not here to let go."""
        self._loading = threading.Lock()
        if not isinstance(self._guard, contextlib.nullcontext):
            self._guard = threading.Lock()

    @property
    def is_loaded(self) -> bool:
        """Whether the model is in memory."""
        return self._engine is not None

    def prepare(self) -> None:
        """Load the model and ask it once.

        Raises:
            DeciderUnavailable: It cannot be loaded.
        """
        self._loaded(None)
        self._evaluate({"state": {"message": "warm"}, "questions": {"q": {"type": "noul", "instructions": "It is."}}})

    def send(self, document: Mapping[str, Any], until: float) -> object:
        """Ask the engine; a forward cannot be interrupted, so whoever waits stops waiting."""
        self._loaded(until)
        return self._evaluate(document)

    def _evaluate(self, document: Mapping[str, Any]) -> object:
        from pydantic import ValidationError
        from strands_decider.schema import SystemOneRequest

        try:
            request = SystemOneRequest(**document)
        except ValidationError as error:
            raise DeciderRejected(f"strands-decider refuses the request: {error.error_count()} faults") from None
        try:
            with self._guard:
                return self._engine.evaluate(request).model_dump()
        except ValueError as error:
            kind = PromptTooLong if looks_too_long(str(error)) else DeciderRejected
            raise kind(f"strands-decider refuses the request: {error}") from None

    def _loaded(self, until: float | None) -> None:
        """Load unless loaded; wait for another thread that loads, but not beyond the deadline."""
        if self._engine is not None:
            return
        if not self._loading.acquire(timeout=-1 if until is None else left(until)):
            raise DeciderTimeout(f"strands-decider checkpoint {self.checkpoint!r} is still being loaded")
        try:
            if self._engine is not None:
                return
            if self._failure is not None and time.monotonic() < self._failure[0]:
                raise DeciderUnavailable(self._failure[1])
            engine = outcome_of(self._load)
            if isinstance(engine, Exception):
                name = f"strands-decider checkpoint {self.checkpoint!r}"
                why = f"{name} cannot be loaded ({type(engine).__name__}: {engine})"
                self._failure = (time.monotonic() + _RELOAD_AFTER_S, why)
                raise DeciderUnavailable(why) from engine
            self._engine = engine
        finally:
            self._loading.release()

    def _load(self) -> Any:
        from strands_decider.infer import EngineConfig, SystemOneEngine
        from strands_decider.modeling import StrandsDeciderModel

        device = self._device or _best_device()
        if device.startswith("mps"):
            self._guard = threading.Lock()  # overlapping forwards abort the process there, strands-decider issue 9
        name = os.path.basename(self.checkpoint.rstrip("/" + os.sep))
        # load_engine() cannot be told to refuse what does not fit.
        engine = SystemOneEngine(
            StrandsDeciderModel.load(self.checkpoint),
            EngineConfig(device=device, strict_window=True, model_name=name),
        )
        self.about.update(model=name, device=device, window_tokens=int(engine.model.config.max_length))
        return engine


def _best_device() -> str:
    import torch

    if torch.cuda.is_available():
        return "cuda"
    mps = getattr(torch.backends, "mps", None)
    return "mps" if mps is not None and mps.is_available() else "cpu"
