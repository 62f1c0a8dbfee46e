"""The heads: small functions from vectors to a probability, read from one data file.

The file is a zip of plain arrays (`.npz`, never pickled) with a `heads.json` that says what they are. A head is a few
layers over blocks of numbers about a turn, or about a turn and a subject, and a calibration of its logit (Platt).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.questions import Thresholds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

FORMAT = 2
"""The version of the file's layout; a file of another version is refused."""


@dataclass(frozen=True)
class About:
    """What `heads.json` says.

    Attributes:
        model_id: Names encoder and heads together, such as "embedded-3".
        thresholds: Chosen on development sets, for this file's probabilities.
        heads: Per head ("gate", "namespace", "record") its blocks, layers and calibration.
    """

    model_id: str
    thresholds: Thresholds
    heads: Mapping[str, Mapping[str, Any]]


def read_about(path: Path) -> About:
    """Read what the file says of itself, without numpy.

    Raises:
        ValueError: The file is of another format version.
        OSError: It cannot be read.
    """
    with zipfile.ZipFile(path) as file:
        spec = json.loads(file.read("heads.json"))
    if spec["format"] != FORMAT:
        raise ValueError(f"{path} has heads of format {spec['format']!r}; this version reads format {FORMAT}")
    return About(spec["model_id"], Thresholds(**spec["thresholds"]), spec["heads"])


def join(blocks: Sequence[str], turns: Array, subjects: Array) -> Array:
    """Return blocks side by side, one row per pair of a turn and a subject.

    Args:
        blocks: "turn", the vector of the turn; "turn.subject", the cosine; "turn*subject" and "turn~subject", products
            and distances element by element.
        turns: (rows, width), unit vectors.
        subjects: (rows, width), unit vectors; not read for "turn".

    Raises:
        KeyError: There is no such block.
    """
    import numpy as np

    found: Mapping[str, Callable[[], Array]] = {
        "turn": lambda: turns,
        "turn.subject": lambda: (turns * subjects).sum(axis=1, keepdims=True),
        "turn*subject": lambda: turns * subjects,
        "turn~subject": lambda: np.abs(turns - subjects),
    }
    return np.concatenate([found[name]() for name in blocks], axis=1)


def sigmoid(logits: NDArray[Any]) -> list[float]:
    """Return P per logit, each within 0..1."""
    import numpy as np

    return [float(p) for p in 1.0 / (1.0 + np.exp(-np.clip(logits, -30.0, 30.0)))]


@dataclass(frozen=True)
class Head:
    """Layers over joined blocks, calibrated: P = sigmoid(slope * logit + intercept).

    Attributes:
        blocks: What the first layer reads.
        layers: Weights (inputs, outputs) and biases; the rectifier follows all but the last, which has one output.
        slope: Of the calibration.
        intercept: Of the calibration.
    """

    blocks: tuple[str, ...]
    layers: tuple[tuple[Array, Array], ...]
    slope: float
    intercept: float

    def logits(self, turns: Array, subjects: Array) -> Array:
        """Return one logit per row of vectors, before calibration."""
        import numpy as np

        x = join(self.blocks, turns, subjects)
        for weight, bias in self.layers[:-1]:
            x = np.maximum(x @ weight + bias, np.float32(0))
        weight, bias = self.layers[-1]
        logits: Array = (x @ weight + bias)[:, 0]
        return logits

    def probabilities(self, turns: Array, subjects: Array) -> list[float]:
        """Return P per row of vectors, each within 0..1."""
        return sigmoid(self.slope * self.logits(turns, subjects).astype(float) + self.intercept)


def read_heads(path: Path) -> dict[str, Head]:
    """Read the heads; refuses pickled arrays."""
    import numpy as np

    about = read_about(path)
    with np.load(path, allow_pickle=False) as arrays:
        return {
            name: Head(
                tuple(head["blocks"]),
                tuple(
                    (np.asarray(arrays[weight], np.float32), np.asarray(arrays[bias], np.float32))
                    for weight, bias in head["layers"]
                ),
                head["slope"],
                head["intercept"],
            )
            for name, head in about.heads.items()
        }
