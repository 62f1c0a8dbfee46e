"""Loading a decision model before the first turn needs it: for servers and for the start of a Lambda function."""

from __future__ import annotations

from ..core.functions import outcome_of
from ..core.questions import Decider, name_of
from ..errors import DeciderUnavailable, error_kind
from ..runtime.decide import load
from .resolve import DeciderSpec, resolve_decider


def warm(decider: DeciderSpec = "embedded") -> None:
    """Load a decision model now, in this thread or the one that has begun to, so that no turn waits for it.

    Managers made later with the same name share what is loaded. An object is loaded itself, so pass the same one to
    them. What a list holds is loaded one after the other; a member that cannot be loaded is logged.

    Args:
        decider: What `GatedMemorySessionManager(decider=)` takes. A function, a server and None have nothing
            to load.

    Raises:
        ConfigurationError: As `resolve_decider`.
        DeciderUnavailable: (a GatedMemoryError) it cannot be loaded, or no member of a list can.
    """
    found = resolve_decider(decider)
    if found is not None:
        load_now(found, decider)


def load_now(decider: Decider, key: object) -> None:
    """Load a decider in this thread.

    Args:
        decider: What to load.
        key: Who it is, see `breaker_of`.

    Raises:
        DeciderUnavailable: It cannot be loaded.
    """
    error = outcome_of(lambda: load(decider, key))
    if error is not None:
        raise DeciderUnavailable(
            f"decider {name_of(decider)} cannot be loaded ({error_kind(error)}: {error}); "
            "`strands-gated-memory check <spec>` asks it alone"
        ) from error
