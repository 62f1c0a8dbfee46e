"""The encoder's matrices as int8, for products of int8 with one scale per token.

A product of unsigned bytes (a token's values) and signed bytes (the weights) is several times faster than one of
floats, and with a scale per token a text does not depend on the batch that it is in. Two things make it exact enough:

- Inputs that are large in few channels are evened out, and the weights take the difference (SmoothQuant, G. Xiao et
  al. 2022); the error of rounding a weight is made good by the weights after it (GPTQ, E. Frantar et al. 2022).
- CPUs without VNNI add two neighbouring products in 16 bits and saturate. Two neighbouring weights of the same sign
  therefore sum to at most 128 in magnitude, so that no input can overflow and every CPU computes the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

SMOOTHING = 0.7
"""How much of the unevenness of the inputs goes to the weights, 0..1."""
NEIGHBOURS = 128
"""Largest sum of two neighbouring weights of the same sign: 255 * 128 fits 16 bits."""
DAMPING = 0.01
BLOCK = 128


@dataclass(frozen=True)
class Observed:
    """What goes into a matrix.

    Attributes:
        largest: (inputs,): the largest magnitude per channel.
        products: (inputs, inputs): the sum over tokens of the outer products.
    """

    largest: Array
    products: Array


@dataclass(frozen=True)
class Quantised:
    """A matrix in int8: `codes * scales / smoothing[:, None]` is close to it.

    Attributes:
        smoothing: (inputs,): what an input is divided by.
        codes: (inputs, outputs), int8.
        scales: (outputs,).
    """

    smoothing: Array
    codes: NDArray[np.int8]
    scales: Array


def observe(checkpoint: Path, texts: Sequence[str], tokens: int) -> Mapping[str, Observed]:
    """Run the checkpoint over texts and return what goes into the matrices, by the name of the part; needs torch."""
    import torch
    from transformers import AutoModel, PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(checkpoint / "tokenizer.json")).backend_tokenizer
    tokenizer.no_padding()
    tokenizer.enable_truncation(tokens)
    model: Any = AutoModel.from_pretrained(checkpoint, dtype=torch.float32).eval()
    found: dict[str, Observed] = {}

    def watch(name: str) -> Any:
        def hook(_: Any, inputs: tuple[torch.Tensor, ...]) -> None:
            x = inputs[0][0].numpy()
            largest, products = np.abs(x).max(0), x.T @ x
            if before := found.get(name):
                largest, products = np.maximum(largest, before.largest), products + before.products
            found[name] = Observed(largest, products)

        return hook

    for at, layer in enumerate(model.encoder.layer):
        parts = {
            "qkv": layer.attention.self.query,
            "attention.output.dense": layer.attention.output.dense,
            "intermediate.dense": layer.intermediate.dense,
            "output.dense": layer.output.dense,
        }
        for name, part in parts.items():
            part.register_forward_pre_hook(watch(f"encoder.layer.{at}.{name}"))
    with torch.no_grad():
        for text in texts:
            model(input_ids=torch.tensor([tokenizer.encode(text).ids]))
    return found


def quantise(matrix: Array, observed: Observed, *, smooth: bool) -> Quantised:
    """Return a matrix in int8.

    Args:
        matrix: (inputs, outputs).
        observed: What goes into it.
        smooth: Whether its inputs may be scaled; not where they have a fixed zero.
    """
    smoothing = _smoothing(matrix, observed.largest) if smooth else np.ones(len(matrix), np.float32)
    weights = (matrix * smoothing[:, None]).astype(np.float64)
    scales = _scales(weights)
    codes = _rounded(weights, scales, observed.products.astype(np.float64) / np.outer(smoothing, smoothing))
    return Quantised(smoothing, _without_overflow(codes).astype(np.int8), scales.astype(np.float32))


def _smoothing(matrix: Array, largest: Array) -> Array:
    inputs, weights = np.maximum(largest, 1e-5), np.maximum(np.abs(matrix).max(1), 1e-5)
    ratio = inputs**SMOOTHING / weights ** (1 - SMOOTHING)
    smoothing: Array = (ratio / np.exp(np.log(ratio).mean())).astype(np.float32)
    return smoothing


def _scales(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    up, down = np.maximum(weights, 0), np.maximum(-weights, 0)
    pairs = np.maximum((up[0::2] + up[1::2]).max(0), (down[0::2] + down[1::2]).max(0))
    scales: NDArray[np.float64] = np.maximum(np.maximum(np.abs(weights).max(0), pairs), 1e-12) / 127
    return scales


def _rounded(
    weights: NDArray[np.float64], scales: NDArray[np.float64], products: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Round row by row; each row's error is made good by the rows after it, as far as their inputs go together."""
    inputs = len(weights)
    damped = products + np.eye(inputs) * DAMPING * np.trace(products) / inputs
    upper = np.linalg.cholesky(np.linalg.inv(damped)).T
    rest, codes = weights.copy(), np.zeros_like(weights)
    for start in range(0, inputs, BLOCK):
        end = min(start + BLOCK, inputs)
        errors = np.zeros((end - start, weights.shape[1]))
        for row in range(start, end):
            codes[row] = np.clip(np.round(rest[row] / scales), -127, 127)
            errors[row - start] = (rest[row] - codes[row] * scales) / upper[row, row]
            rest[row + 1 : end] -= np.outer(upper[row, row + 1 : end], errors[row - start])
        rest[end:] -= upper[start:end, end:].T @ errors
    return codes


def _without_overflow(codes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the codes with the larger of two neighbours made smaller until no pair is over the limit."""
    codes = codes.copy()
    first, second = codes[0::2], codes[1::2]
    while (over := (first * second > 0) & (np.abs(first + second) > NEIGHBOURS)).any():
        larger = np.abs(first) >= np.abs(second)
        first -= np.where(over & larger, np.sign(first), 0)
        second -= np.where(over & ~larger, np.sign(second), 0)
    return codes
