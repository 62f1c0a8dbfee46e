"""Make a checkpoint of the shipped model, so that training can go on from it.

    python -m harness.training.restore --out CHECKPOINT

The package holds the encoder in int8 and the heads in float16; the checkpoint that they were made of is not kept. What
comes back differs from it by what was rounded off. Calibrations are no part of a checkpoint: `calibrate` makes them.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from safetensors.numpy import save_file

from strands_gated_memory.embedded.encoder import DATA
from strands_gated_memory.embedded.heads import read_heads

from .export import HEADS, default_checkpoint, read_tensors
from .finetune import Decisions

Tensors = dict[str, NDArray[np.float32]]


def tensors_of(graph: Mapping[str, NDArray], base: Tensors, heads: int) -> Tensors:  # type: ignore[type-arg]
    """Return the encoder's arrays under their Hugging Face names.

    Args:
        graph: The constants of `encoder.onnx` by name.
        base: The arrays of the checkpoint that training began with: what the graph does not hold is taken from it.
        heads: Attention heads per layer.
    """
    found = dict(base)
    found["embeddings.word_embeddings.weight"] = _floats(graph["words.int8"]) * _floats(graph["words.scale"])
    kind = base["embeddings.token_type_embeddings.weight"][0]
    places = _floats(graph["positions"]) - kind
    found["embeddings.position_embeddings.weight"] = base["embeddings.position_embeddings.weight"].copy()
    found["embeddings.position_embeddings.weight"][: len(places)] = places
    for name in graph:
        if name.endswith(".int8") and name != "words.int8":
            part = name.removesuffix(".int8")
            matrix = _floats(graph[name]) * graph[f"{part}.scale"]
            if f"{part}.smoothing" in graph:  # stored as its inverse: what an input is multiplied by
                matrix *= graph[f"{part}.smoothing"][:, None]
            found |= _parts(part, matrix, graph[f"{part}.bias"], heads)
        elif name.endswith("LayerNorm.weight") or name.endswith("LayerNorm.bias"):
            found[name] = _floats(graph[name])
    return found


def _parts(part: str, matrix: NDArray[np.float32], bias: NDArray[np.float32], heads: int) -> Tensors:
    """Return weight and bias of a matrix; of query, key and value side by side, those of each."""
    if not part.endswith(".qkv"):
        return {f"{part}.weight": matrix.T, f"{part}.bias": bias}
    width = len(matrix) // heads
    scale = {"query": np.float32(width**0.5), "key": np.float32(1), "value": np.float32(1)}  # as stored: scaled
    at = part.removesuffix(".qkv")
    found = {}
    for name, weight, shift in zip(scale, np.split(matrix, 3, axis=1), np.split(bias, 3), strict=True):
        found[f"{at}.attention.self.{name}.weight"] = weight.T * scale[name]
        found[f"{at}.attention.self.{name}.bias"] = shift * scale[name]
    return found


def _floats(values: NDArray) -> NDArray[np.float32]:  # type: ignore[type-arg]
    return values.astype(np.float32)


def restore_heads(model: Decisions, data: Path) -> None:
    """Set a model's heads to the shipped ones: the inverse of each head's `stored`."""
    for name, head in read_heads(data / "heads.npz").items():
        target = model.heads[name]
        (first, first_bias), (last, last_bias) = (tuple(map(torch.tensor, layer)) for layer in head.layers)
        with torch.no_grad():
            if head.blocks == ("turn",):
                target.layers[1].weight.copy_(first.T / target.scale)
                target.layers[1].bias.copy_(first_bias)
                target.layers[4].weight.copy_(last.T)
                target.layers[4].bias.copy_(last_bias)
            else:
                target.correction[0].weight.copy_(first[1:, 1:].T / 20)
                target.correction[0].bias.copy_(first_bias[1:])
                target.correction[2].weight.copy_(last[1:].T)
                target.correction[2].bias.zero_()
                target.scale.copy_(last[0, 0])
                target.shift.copy_(last_bias[0] + last[0, 0])


def restore(data: Path, out: Path) -> None:
    """Write a checkpoint folder for `finetune` from a folder of data files."""
    base = default_checkpoint()
    config = json.loads((base / "config.json").read_text(encoding="utf-8"))
    graph = {one.name: numpy_helper.to_array(one) for one in onnx.load(data / "encoder.onnx").graph.initializer}
    out.mkdir(parents=True, exist_ok=True)
    tensors = tensors_of(graph, read_tensors(base), config["num_attention_heads"])
    save_file({name: np.ascontiguousarray(values) for name, values in tensors.items()}, out / "model.safetensors")
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(base / name, out)
    model = Decisions(out)
    restore_heads(model, data)
    torch.save(model.heads.state_dict(), out / HEADS)


def main() -> None:
    """Write the checkpoint."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    restore(options.data, options.out)


if __name__ == "__main__":
    main()
