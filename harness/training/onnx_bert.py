"""Write a BERT sentence encoder as a small ONNX graph.

Comes in: the checkpoint's tensors as numpy arrays, its matrices in int8 and its configuration. Goes out: an ONNX model.
Every product with a matrix is one of bytes (`quantise`); its input is quantised with one scale per token, so a text's
embedding does not depend on the batch it is in. (Dynamic int8, the usual small export, has one scale per batch, and
does.) Everything else is float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .quantise import Quantised

Tensors: TypeAlias = Mapping[str, np.ndarray]
Matrices: TypeAlias = Mapping[str, Quantised]

OPSET = 20
"""Gelu is a standard operator from 20 on; onnxruntime has it since 1.17."""
IR_VERSION = 9
"""Old enough for every onnxruntime that pyproject.toml allows."""
MICROSOFT = "com.microsoft"
"""The domain of MatMulIntegerToFloat, which every onnxruntime has."""
GELU_LEAST = 0.17
"""Gelu is never below minus this."""
GELU_ZERO = 16
"""The byte that stands for 0 after Gelu; those below it are for its few negative values."""


@dataclass(frozen=True)
class BertShape:
    """The sizes of the encoder.

    Attributes:
        hidden: Width of a token's vector.
        heads: Attention heads per layer.
        layers: Transformer layers.
        positions: Longest input, tokens; later position embeddings are left out of the file.
        epsilon: Added to the variance in layer normalisation.
    """

    hidden: int
    heads: int
    layers: int
    positions: int
    epsilon: float

    @classmethod
    def of(cls, config: Mapping[str, Any], positions: int) -> BertShape:
        """Read the sizes from a Hugging Face `config.json`; refuse what the graph does not compute."""
        if config.get("hidden_act") != "gelu" or config.get("position_embedding_type", "absolute") != "absolute":
            raise ValueError("only BERT with exact gelu and absolute positions is supported")
        return cls(
            hidden=config["hidden_size"],
            heads=config["num_attention_heads"],
            layers=config["num_hidden_layers"],
            positions=min(positions, config["max_position_embeddings"]),
            epsilon=config["layer_norm_eps"],
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

    def shared(self, name: str, value: np.generic) -> str:
        """Return a constant that several nodes read."""
        return name if any(constant.name == name for constant in self.constants) else self.constant(name, value)

    def linear(self, x: str, name: str, matrix: Quantised, bias: np.ndarray, *, after_gelu: bool = False) -> str:
        """Multiply by an int8 matrix; the input is quantised token by token.

        A token's values are divided by its step, which puts the largest at the end of the range of bytes.
        """
        if after_gelu:
            zero, top, least = GELU_ZERO, 255 - GELU_ZERO, GELU_LEAST / GELU_ZERO
            largest = self.add("ReduceMax", x, self.ints(-1), keepdims=1)
        else:
            zero, top, least = 128, 127, 1e-9
            x = self.add("Mul", x, self.constant(name + ".smoothing", 1 / matrix.smoothing))
            largest = self.add("ReduceMax", self.add("Abs", x), self.ints(-1), keepdims=1)
        step = self.add("Mul", largest, self.shared(f"over_{top}", np.float32(1 / top)))
        step = self.add("Max", step, self.shared(f"least_{top}", np.float32(least)))
        one, nought = self.shared("one", np.float32(1)), self.shared(f"zero_{zero}", np.uint8(zero))
        codes = self.add("QuantizeLinear", self.add("Div", x, step), one, nought)
        weights = self.constant(name + ".int8", matrix.codes)
        scales = self.constant(name + ".scale", matrix.scales)
        signed = self.shared("zero_signed", np.int8(0))
        product = self.add("MatMulIntegerToFloat", codes, weights, one, scales, nought, signed, domain=MICROSOFT)
        return self.add("Add", self.add("Mul", product, step), self.constant(name + ".bias", bias))


def rounded(values: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Return symmetric int8 codes and their float16 scales along `axis`, rounding error at most half a step."""
    scales = (np.abs(values).max(axis=axis, keepdims=True) / 127).astype(np.float16)
    scales = np.where(scales == 0, np.float16(1), scales)
    codes = np.clip(np.round(values / scales.astype(np.float32)), -127, 127).astype(np.int8)
    return codes, scales


def joint(tensors: Tensors, shape: BertShape, layer: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights (inputs, outputs) and biases of query, key and value side by side; the query is scaled."""
    width = shape.hidden // shape.heads
    parts = [f"encoder.layer.{layer}.attention.self.{part}" for part in ("query", "key", "value")]
    scale = [np.float32(width**-0.5), np.float32(1), np.float32(1)]
    matrix = np.concatenate([tensors[p + ".weight"].T * s for p, s in zip(parts, scale, strict=True)], axis=1)
    return matrix, np.concatenate([tensors[p + ".bias"] * s for p, s in zip(parts, scale, strict=True)])


def build(tensors: Tensors, matrices: Matrices, shape: BertShape) -> onnx.ModelProto:
    """Build the graph.

    Args:
        tensors: The checkpoint's arrays under their Hugging Face names, without a "bert." prefix.
        matrices: Per layer the matrices "qkv", "attention.output.dense", "intermediate.dense" and "output.dense".
        shape: The sizes.

    Returns:
        A model: `input_ids` and `attention_mask` (int64, batch x length) to `sentence_embedding` (mean over
        tokens, L2 norm 1) and `token_embeddings` (the last layer, there anyway).
    """
    g = _Graph()
    mask = g.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    x = _embed(g, tensors, shape)
    absent = g.add("Sub", g.shared("one", np.float32(1)), g.add("Unsqueeze", mask, g.ints(1, 2)))
    blocked = g.add("Mul", absent, g.constant("minus", np.float32(-1e9)))
    for layer in range(shape.layers):
        last = layer == shape.layers - 1
        x = _layer(g, tensors, matrices, shape, layer, x=x, blocked=blocked, out="token_embeddings" if last else None)
    column = g.add("Unsqueeze", mask, g.ints(-1))
    total = g.add("ReduceSum", g.add("Mul", x, column), g.ints(1), keepdims=0)
    mean = g.add("Div", total, g.add("ReduceSum", column, g.ints(1), keepdims=0))
    norm = g.add("ReduceL2", mean, g.ints(-1), keepdims=1)
    g.add("Div", mean, g.add("Max", norm, g.constant("tiny", np.float32(1e-12))), out="sentence_embedding")
    return _model(g, shape)


def _embed(g: _Graph, tensors: Tensors, shape: BertShape) -> str:
    # Gather first, then dequantise: the table stays int8 in memory (12 MB, not 47).
    codes, scales = rounded(tensors["embeddings.word_embeddings.weight"], axis=1)
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


def _layer(
    g: _Graph,
    tensors: Tensors,
    matrices: Matrices,
    shape: BertShape,
    layer: int,
    *,
    x: str,
    blocked: str,
    out: str | None,
) -> str:
    at = f"encoder.layer.{layer}"
    width = shape.hidden // shape.heads

    def dense(value: str, name: str, *, after_gelu: bool = False) -> str:
        bias = tensors[f"{at}.{name}.bias"]
        return g.linear(value, f"{at}.{name}", matrices[f"{at}.{name}"], bias, after_gelu=after_gelu)

    def residual(value: str, name: str, x: str, out: str | None = None) -> str:
        return _norm(g, tensors, shape, f"{at}.{name}.LayerNorm", x=g.add("Add", value, x), out=out)

    joined = g.linear(x, f"{at}.qkv", matrices[f"{at}.qkv"], joint(tensors, shape, layer)[1])
    split = g.add("Reshape", joined, g.ints(0, 0, 3, shape.heads, width))
    stacked = g.add("Transpose", split, perm=[2, 0, 3, 1, 4])  # part, batch, head, token, width
    query, key, value = (g.add("Gather", stacked, g.constant(f"{at}.{n}", np.int64(n)), axis=0) for n in range(3))
    scores = g.add("MatMul", query, g.add("Transpose", key, perm=[0, 1, 3, 2]))
    attention = g.add("Softmax", g.add("Add", scores, blocked), axis=-1)
    heads = g.add("Transpose", g.add("MatMul", attention, value), perm=[0, 2, 1, 3])
    context = g.add("Reshape", heads, g.ints(0, 0, shape.hidden))
    x = residual(dense(context, "attention.output.dense"), "attention.output", x)
    inner = g.add("Gelu", dense(x, "intermediate.dense"))
    return residual(dense(inner, "output.dense", after_gelu=True), "output", x, out)


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
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)], ir_version=IR_VERSION
    )
    model.producer_name = "strands-gated-memory harness/training/export.py"
    onnx.checker.check_model(model)
    return model
