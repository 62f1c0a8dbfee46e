"""Heads of a user's own labels: what they read, and P from it. Shared by `harness fit` and run time.

A head reads the shipped head's logit first, so that it starts from what the package knows already, then the
named blocks of `features`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.fitted import LogisticHead, logit
from ..core.questions import State
from .features import Blocks, Texts, texts_used
from .reading import history

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

INPUTS: Mapping[str, tuple[str, ...]] = {
    "gate": ("turn", "message"),
    "router": ("message.subject", "context.subject", "overlap", "subject_form", "message*subject"),
    "validator": ("message.subject", "context.subject", "overlap", "subject_form", "message*subject"),
}
"""The blocks that `fit --heads` uses per stage."""


def features_of(
    encoder: Any, state: State, subjects: Sequence[str | None], own: Sequence[float], inputs: Sequence[str]
) -> Array:
    """Return one row per subject: the logit of the shipped head's P, then the blocks.

    Args:
        encoder: As `embedded.encoder.Encoder`.
        state: The turn.
        subjects: Records or descriptions; [None] per question for the gate.
        own: The shipped head's P, 0..1, one for each.
        inputs: Names of blocks.

    Raises:
        KeyError: There is no such block.
    """
    import numpy as np

    texts = Texts.of(state["message"], history(state["previous"]))
    names = texts_used(inputs)
    given = [subject for subject in subjects if subject is not None]
    vectors = encoder.encode([*texts.get(names), *given])
    turn = dict(zip(names, vectors, strict=False))
    blocks = Blocks(texts, turn, given, vectors[len(names) :] if given else None)
    joined = _joined(blocks, inputs, len(subjects)).astype(float)
    return np.concatenate([np.array([[logit(p)] for p in own]), joined], axis=1)


def input_width(inputs: Sequence[str], encoder_width: int, *, with_subject: bool) -> int:
    """Return how many numbers a row has, the shipped head's logit included.

    Raises:
        KeyError: A block does not exist, or is of a subject where there is none.
    """
    import numpy as np

    vector = np.zeros(encoder_width, np.float32)
    names = texts_used(inputs)
    subjects = ["a note"] if with_subject else []
    blocks = Blocks(
        Texts.of("a message", ("before", "reply")),
        dict.fromkeys(names, vector),
        subjects,
        vector[None] if with_subject else None,
    )
    return 1 + int(_joined(blocks, inputs, 1).shape[1])


def probabilities(head: LogisticHead, features: Array) -> list[float]:
    """Return P per row."""
    import numpy as np

    scaled = (features - np.array(head.mean)) / np.array(head.scale)
    value = np.clip(scaled @ np.array(head.weight) + head.intercept, -30.0, 30.0)
    return [float(p) for p in 1.0 / (1.0 + np.exp(-value))]


def _joined(blocks: Blocks, inputs: Sequence[str], rows: int) -> Any:
    import numpy as np

    if not inputs:
        return np.zeros((rows, 0))
    try:
        joined = blocks.join(inputs)
    except (KeyError, AttributeError) as error:  # AttributeError: not even of a block's form
        unknown = next((name for name in inputs if not _exists(blocks, name)), str(error))
        raise KeyError(unknown) from error
    # Every gate question of a request is the same question: one row answers all of them.
    return np.broadcast_to(joined, (rows, joined.shape[1])) if len(joined) == 1 else joined


def _exists(blocks: Blocks, name: str) -> bool:
    try:
        blocks.get(name)
    except (KeyError, AttributeError):
        return False
    return True
