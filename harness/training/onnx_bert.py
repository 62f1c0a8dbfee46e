"""Write a BERT sentence encoder as a small ONNX graph.

Comes in: the checkpoint's tensors as numpy arrays and its configuration. Goes out: an ONNX model with
standard operators only. Weights are stored as int8 with one scale per group of inputs and output
channel; the graph turns them into float32 with Cast and Mul, which onnxruntime folds at load. Every
activation is float32, so a text's embedding does not depend on the batch it is in. (Dynamic int8, the
usual small export, quantises activations with one scale per batch, and does.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Tensors: TypeAlias = Mapping[str, np.ndarray]

OPSET = 20
"""Gelu is a standard operator from 20 on; onnxruntime has it since 1.17."""
IR_VERSION = 9
"""Old enough for every onnxruntime that pyproject.toml allows."""


@dataclass(frozen=True)
class BertShape:
    """The sizes of the encoder.

    Attributes:
        hidden: Width of a token's vector.
        heads: Attention heads per layer.
        layers: Transformer layers.
        positions: Longest input, tokens; later position embeddings are left out of the file.
        epsilon: Added to the variance in layer normalisation.
        group: Inputs that share one int8 scale, per output channel; must divide every input width.
    """

    hidden: int
    heads: int
    layers: int
    positions: int
    epsilon: float
    group: int

    @classmethod
    def of(cls, config: Mapping[str, Any], positions: int, group: int) -> BertShape:
        """Read the sizes from a Hugging Face `config.json`; refuse what the graph does not compute."""
        if config.get("hidden_act") != "gelu" or config.get("position_embedding_type", "absolute") != "absolute":
            raise ValueError("only BERT with exact gelu and absolute positions is supported")
        return cls(
            hidden=config["hidden_size"],
            heads=config["num_attention_heads"],
            layers=config["num_hidden_layers"],
            positions=min(positions, config["max_position_embeddings"]),
            epsilon=config["layer_norm_eps"],
            group=group,
        )


@dataclass
class _Graph:
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def constant(self, name: str, value: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def add(self, op: str, *inputs: str, out: str | None = None, **attributes: Any) -> str:
        out = out or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], **attributes))
        return out

    def ints(self, *values: int) -> str:
        name = "i_" + "_".join(str(value) for value in values)
        if all(constant.name != name for constant in self.constants):
            self.constant(name, np.array(values, np.int64))
        return name

    def weight(self, name: str, matrix: np.ndarray, group: int) -> str:
        """Store a (inputs, outputs) matrix as int8 and return its float32 value, foldable at load."""
        inputs, outputs = matrix.shape
        blocks = matrix.reshape(inputs // group, group, outputs)
        codes, scales = quantise(blocks, axis=1)
        value = self.add("Cast", self.constant(name + ".int8", codes), to=TensorProto.FLOAT)
        scale = self.add("Cast", self.constant(name + ".scale", scales), to=TensorProto.FLOAT)
        return self.add("Reshape", self.add("Mul", value, scale), self.ints(inputs, outputs))

    def linear(self, x: str, name: str, matrix: np.ndarray, bias: np.ndarray, group: int) -> str:
        product = self.add("MatMul", x, self.weight(name, matrix, group))
        return self.add("Add", product, self.constant(name + ".bias", bias))


def quantise(values: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Return symmetric int8 codes and their float16 scales along `axis`, rounding error at most half a step."""
    scales = (np.abs(values).max(axis=axis, keepdims=True) / 127).astype(np.float16)
    scales = np.where(scales == 0, np.float16(1), scales)
    codes = np.clip(np.round(values / scales.astype(np.float32)), -127, 127).astype(np.int8)
    return codes, scales


def build(tensors: Tensors, shape: BertShape) -> onnx.ModelProto:
    """Build the graph.

    Args:
        tensors: The checkpoint's arrays under their Hugging Face names, without a "bert." prefix.
        shape: The sizes.

    Returns:
        A model: `input_ids` and `attention_mask` (int64, batch x length) to `sentence_embedding` (mean over
        tokens, L2 norm 1) and `token_embeddings` (the last layer, there anyway).
    """
    g = _Graph()
    mask = g.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    x = _embed(g, tensors, shape)
    absent = g.add("Sub", g.constant("one", np.float32(1)), g.add("Unsqueeze", mask, g.ints(1, 2)))
    blocked = g.add("Mul", absent, g.constant("minus", np.float32(-1e9)))
    for layer in range(shape.layers):
        last = layer == shape.layers - 1
        x = _layer(g, tensors, shape, layer, x=x, blocked=blocked, out="token_embeddings" if last else None)
    column = g.add("Unsqueeze", mask, g.ints(-1))
    total = g.add("ReduceSum", g.add("Mul", x, column), g.ints(1), keepdims=0)
    mean = g.add("Div", total, g.add("ReduceSum", column, g.ints(1), keepdims=0))
    norm = g.add("ReduceL2", mean, g.ints(-1), keepdims=1)
    g.add("Div", mean, g.add("Max", norm, g.constant("tiny", np.float32(1e-12))), out="sentence_embedding")
    return _model(g, shape)


def _embed(g: _Graph, tensors: Tensors, shape: BertShape) -> str:
    # Gather first, then dequantise: the table stays int8 in memory (12 MB, not 47).
    codes, scales = quantise(tensors["embeddings.word_embeddings.weight"], axis=1)
    rows = g.add("Gather", g.constant("words.int8", codes), "input_ids")
    steps = g.add("Gather", g.constant("words.scale", scales), "input_ids")
    words = g.add("Mul", g.add("Cast", rows, to=TensorProto.FLOAT), g.add("Cast", steps, to=TensorProto.FLOAT))
    places = tensors["embeddings.position_embeddings.weight"][: shape.positions]
    places = places + tensors["embeddings.token_type_embeddings.weight"][0]
    length = g.add("Shape", "input_ids", start=1, end=2)
    table = g.constant("positions", places.astype(np.float16))
    used = g.add("Slice", table, g.ints(0), length, g.ints(0))
    x = g.add("Add", words, g.add("Cast", used, to=TensorProto.FLOAT))
    return _norm(g, tensors, shape, "embeddings.LayerNorm", x=x)


def _layer(g: _Graph, tensors: Tensors, shape: BertShape, layer: int, *, x: str, blocked: str, out: str | None) -> str:
    at = f"encoder.layer.{layer}"
    width = shape.hidden // shape.heads
    parts = [f"{at}.attention.self.{part}" for part in ("query", "key", "value")]
    scale = [np.float32(width**-0.5), np.float32(1), np.float32(1)]
    matrix = np.concatenate([tensors[p + ".weight"].T * s for p, s in zip(parts, scale, strict=True)], axis=1)
    bias = np.concatenate([tensors[p + ".bias"] * s for p, s in zip(parts, scale, strict=True)])
    joint = g.linear(x, f"{at}.qkv", matrix, bias, shape.group)
    split = g.add("Reshape", joint, g.ints(0, 0, 3, shape.heads, width))
    stacked = g.add("Transpose", split, perm=[2, 0, 3, 1, 4])  # part, batch, head, token, width
    query, key, value = (g.add("Gather", stacked, g.constant(f"{at}.{n}", np.int64(n)), axis=0) for n in range(3))
    scores = g.add("MatMul", query, g.add("Transpose", key, perm=[0, 1, 3, 2]))
    attention = g.add("Softmax", g.add("Add", scores, blocked), axis=-1)
    heads = g.add("Transpose", g.add("MatMul", attention, value), perm=[0, 2, 1, 3])
    context = g.add("Reshape", heads, g.ints(0, 0, shape.hidden))
    x = _residual(g, tensors, shape, f"{at}.attention.output", value=context, x=x)
    dense = f"{at}.intermediate.dense"
    inner = g.linear(x, dense, tensors[dense + ".weight"].T, tensors[dense + ".bias"], shape.group)
    return _residual(g, tensors, shape, f"{at}.output", value=g.add("Gelu", inner), x=x, out=out)


def _residual(
    g: _Graph, tensors: Tensors, shape: BertShape, name: str, *, value: str, x: str, out: str | None = None
) -> str:
    dense = name + ".dense"
    added = g.linear(value, dense, tensors[dense + ".weight"].T, tensors[dense + ".bias"], shape.group)
    return _norm(g, tensors, shape, name + ".LayerNorm", x=g.add("Add", added, x), out=out)


def _norm(g: _Graph, tensors: Tensors, shape: BertShape, name: str, *, x: str, out: str | None = None) -> str:
    weight = g.constant(name + ".weight", tensors[name + ".weight"])
    bias = g.constant(name + ".bias", tensors[name + ".bias"])
    return g.add("LayerNormalization", x, weight, bias, out=out, axis=-1, epsilon=shape.epsilon)


def _model(g: _Graph, shape: BertShape) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
        for name in ("input_ids", "attention_mask")
    ]
    outputs = [
        helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", shape.hidden]),
        helper.make_tensor_value_info("token_embeddings", TensorProto.FLOAT, ["batch", "length", shape.hidden]),
    ]
    graph = helper.make_graph(g.nodes, "sentence_encoder", inputs, outputs, g.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    model.producer_name = "strands-gated-memory harness/training/export.py"
    onnx.checker.check_model(model, full_check=True)
    return model
