"""Heads of a user's own labels: what they read, and P from it. Shared by `harness fit` and run time.

A head reads the shipped head's logit first, so that it starts from what the package knows already, then the named
blocks of `heads.join`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.fitted import LogisticHead
from ..core.questions import State
from .heads import join, sigmoid
from .reading import history, record_parts, turn_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

INPUTS: Mapping[str, tuple[str, ...]] = {
    "gate": ("turn",),
    "router": ("turn.subject", "turn*subject"),
    "validator": ("turn.subject", "turn*subject"),
}
"""The blocks that `fit --heads` uses per stage."""


def features_of(
    encoder: Any, state: State, subjects: Sequence[str | None], own: Sequence[float], inputs: Sequence[str]
) -> Array:
    """Return one row per subject: the logit of the shipped head's P, then the blocks.

    Args:
        encoder: As `embedded.encoder.Encoder`.
        state: The turn.
        subjects: Records or descriptions; [None] per question for the gate. Of a long record the part that is nearest
            to the turn is read.
        own: The shipped head's P, 0..1, one for each.
        inputs: Names of blocks.

    Raises:
        KeyError: There is no such block.
    """
    import numpy as np

    parts = [record_parts(subject or "") for subject in subjects]
    flat = [part for several in parts for part in several]
    vectors = encoder.encode([turn_text(state["message"], history(state["previous"])), *flat])
    nearest, start = [], 1
    for several in parts:
        held = vectors[start : start + len(several)]
        nearest.append(held[int(np.argmax(held @ vectors[0]))])
        start += len(several)
    clipped = np.clip(np.array(own, float)[:, None], 1e-7, 1.0 - 1e-7)
    logits: Array = np.log(clipped / (1.0 - clipped))
    if not inputs:
        return logits
    turns = np.repeat(vectors[:1], len(subjects), axis=0)
    return np.concatenate([logits, join(inputs, turns, np.stack(nearest)).astype(float)], axis=1)


def input_width(inputs: Sequence[str], encoder_width: int, *, with_subject: bool) -> int:
    """Return how many numbers a row has, the shipped head's logit included.

    Raises:
        KeyError: A block does not exist, or is of a subject where there is none.
    """
    import numpy as np

    if not with_subject and (foreign := next((name for name in inputs if name != "turn"), None)):
        raise KeyError(foreign)
    vector = np.zeros((1, encoder_width), np.float32)
    return 1 + (join(inputs, vector, vector).shape[1] if inputs else 0)


def probabilities(head: LogisticHead, features: Array) -> list[float]:
    """Return P per row."""
    import numpy as np

    scaled = (features - np.array(head.mean)) / np.array(head.scale)
    return sigmoid(scaled @ np.array(head.weight) + head.intercept)
