"""The heads: small functions from feature blocks to a probability, read from one data file.

The file is a zip of plain arrays (`.npz`, never pickled) with a `heads.json` that says what they are. A head
is one or more networks over joined blocks, optionally after low-rank projections, whose logits are averaged
and calibrated (Platt). A logistic regression is a network of one layer.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.questions import Thresholds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .features import Blocks

    Array = NDArray[np.float32]

FORMAT = 1
"""The version of the file's layout; a file of another version is refused."""


@dataclass(frozen=True)
class About:
    """What `heads.json` says.

    Attributes:
        model_id: Names encoder and heads together, such as "embedded-2".
        thresholds: Chosen on the dev split, for this file's probabilities.
        heads: Per head ("gate", "namespace", "record") its networks and calibration.
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


@dataclass(frozen=True)
class Layer:
    """y = x @ weight + bias, then the rectifier unless it is the last."""

    weight: Array
    bias: Array


@dataclass(frozen=True)
class Network:
    """Layers over joined blocks, and optionally bilinear terms.

    Attributes:
        inputs: Blocks to join.
        bilinear: (left block, right block, left matrix, right matrix): adds the element-wise products of the
            two projections to the inputs.
        layers: The last has one output, the logit.
    """

    inputs: tuple[str, ...]
    bilinear: tuple[tuple[str, str, Array, Array], ...]
    layers: tuple[Layer, ...]

    def logits(self, blocks: Blocks) -> Array:
        """Return one logit per row."""
        import numpy as np

        parts = [blocks.join(self.inputs)] if self.inputs else []
        parts += [(blocks.get(left) @ p) * (blocks.get(right) @ q) for left, right, p, q in self.bilinear]
        x = np.concatenate(parts, axis=1)
        for layer in self.layers[:-1]:
            x = np.maximum(x @ layer.weight + layer.bias, np.float32(0))
        last = self.layers[-1]
        logits: Array = (x @ last.weight + last.bias)[:, 0]
        return logits


@dataclass(frozen=True)
class Head:
    """The mean logit of some networks, calibrated: P = sigmoid(slope * logit + intercept)."""

    networks: tuple[Network, ...]
    slope: float
    intercept: float

    def blocks(self) -> set[str]:
        """Return the names of the blocks that it reads."""
        return {
            name
            for network in self.networks
            for name in (*network.inputs, *(side for term in network.bilinear for side in term[:2]))
        }

    def logits(self, blocks: Blocks) -> NDArray[np.float64]:
        """Return one logit per row, before calibration."""
        import numpy as np

        each = [network.logits(blocks) for network in self.networks]
        logits: NDArray[np.float64] = np.mean(each, axis=0, dtype=float)
        return logits

    def probabilities(self, blocks: Blocks) -> list[float]:
        """Return P per row, each within 0..1."""
        import numpy as np

        value = np.clip(self.slope * self.logits(blocks) + self.intercept, -30.0, 30.0)
        return [float(p) for p in 1.0 / (1.0 + np.exp(-value))]


def read_heads(path: Path) -> dict[str, Head]:
    """Read the heads; refuses pickled arrays."""
    import numpy as np

    about = read_about(path)
    with np.load(path, allow_pickle=False) as arrays:

        def array(name: str) -> Array:
            return np.asarray(arrays[name], np.float32)

        return {
            name: Head(
                tuple(
                    Network(
                        tuple(network["inputs"]),
                        tuple((left, right, array(p), array(q)) for left, right, p, q in network["bilinear"]),
                        tuple(Layer(array(weight), array(bias)) for weight, bias in network["layers"]),
                    )
                    for network in head["networks"]
                ),
                head["slope"],
                head["intercept"],
            )
            for name, head in about.heads.items()
        }
