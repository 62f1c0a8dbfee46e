"""`"auto"`: the first decision model that this machine can use, and why."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import platform
from collections.abc import Callable, Mapping
from pathlib import Path

from ..core.questions import Decider
from .presets import VENDORS
from .transports.local import DEFAULT_CHECKPOINT

logger = logging.getLogger(__name__)

_told: set[tuple[str, str]] = set()
"""What this process has logged; addresses come from the environment, so they are few."""


def choose(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the specification to use, and the reason in words.

    A configured server (SYSTEMONE_URL) comes first, then a hosted model with a key, then strands-decider if
    its checkpoint is in the cache and the machine has an accelerator (on a CPU it takes seconds per
    request), else the embedded model.
    """
    if url := environment.get("SYSTEMONE_URL", "").strip():
        return url, "SYSTEMONE_URL is set"
    for vendor in VENDORS:
        needed = [f"{vendor.variables}_API_KEY", *([] if vendor.base_url else [f"{vendor.variables}_BASE_URL"])]
        if all(environment.get(variable, "").strip() for variable in needed):
            return vendor.example, f"{needed[0]} is set"
    if importlib.util.find_spec("strands_decider") is None:
        return "embedded", "no server, no key, strands-decider not installed"
    if not is_cached(DEFAULT_CHECKPOINT, environment):
        return "embedded", "no server, no key, no strands-decider checkpoint in the cache"
    if not has_accelerator():
        return "embedded", "strands-decider is cached, but takes seconds per request without a GPU"
    return "strands-decider", "its checkpoint is in the cache and there is an accelerator"


def make(resolve: Callable[[str], Decider]) -> Decider:
    """Make the decider that `choose` names, and log which and why."""
    spec, why = choose(os.environ)
    decider = resolve(spec)
    # Once: a server may resolve it for each request.
    level = logging.DEBUG if (spec, why) in _told else logging.INFO
    _told.add((spec, why))
    logger.log(level, "decider=<%s>, reason=<%s> | auto chose this decision model", decider, why)
    return decider


def is_cached(checkpoint: str, environment: Mapping[str, str]) -> bool:
    """Tell whether a checkpoint and the model that it adapts are in the local cache; nothing is asked of the hub."""
    # As huggingface_hub finds it. expanduser leaves "~" alone for a user without a home; Path.home() raises.
    home = environment.get("HF_HOME") or os.path.join(environment.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    hub = Path(os.path.expanduser(environment.get("HF_HUB_CACHE") or os.path.join(home, "hub")))
    found = list(_snapshots(hub, checkpoint).glob("*/strands_decider_config.json"))
    return any(_has_base(config, hub) for config in found)


def _snapshots(hub: Path, repository: str) -> Path:
    return hub / f"models--{repository.replace('/', '--')}" / "snapshots"


def _has_base(config: Path, hub: Path) -> bool:
    """Tell whether the model that a checkpoint adapts, the larger part by far, is there too."""
    try:
        base = json.loads(config.read_bytes()).get("base_model")
    except (OSError, ValueError, AttributeError):
        return False
    if not isinstance(base, str):
        return True
    return os.path.isdir(base) or any(_snapshots(hub, base).glob("*/*.safetensors"))


def has_accelerator() -> bool:
    """Tell whether there is a GPU, without importing torch."""
    apple = platform.system() == "Darwin" and platform.machine() == "arm64"
    return apple or Path("/dev/nvidia0").exists() or Path("/dev/kfd").exists()
