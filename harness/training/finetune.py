"""Fine-tune the sentence encoder on the labelled personas, all three decisions at once.

    python -m harness.training.finetune --corpus harness/training/corpus --out CHECKPOINT

One step is one persona: its turns and its records are encoded once, and every turn is compared with every
record, so the negatives are the same person's other records, which is what retrieval returns. The encoder
sees a turn as one text (`features.turn_text`), so that attention can relate a follow-up to its history.
Written: a checkpoint folder for `export`. The heads trained beside it are thrown away: `fit_heads` fits
the ones that ship, on the exported encoder. Needs torch; seeded.
"""

from __future__ import annotations

import argparse
import random
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from transformers import BertModel, PreTrainedTokenizerFast

from strands_gated_memory.embedded.features import turn_text

from .export import default_checkpoint
from .personas import Persona, read_personas

SEED = 7
EPOCHS = 5
ENCODER_RATE = 8e-5
HEAD_RATE = 1e-3
RECORD_TOKENS, TURN_TOKENS = 80, 192
TARGET = {0: 0.0, 1: 0.5, 2: 0.97}
"""Probability that a grade stands for; 1 may be in the prompt, 2 must."""
PAIR_WEIGHT = 3.0
"""What a turn weighs for the gate whose words another turn has too, with another history and another label."""
LIST_WEIGHT = {0: 0.0, 1: 0.35, 2: 1.0}


class Decisions(nn.Module):
    """The encoder and a small head per decision."""

    def __init__(self, checkpoint: Path) -> None:
        super().__init__()
        self.bert: Any = BertModel.from_pretrained(checkpoint, add_pooling_layer=False)
        width = self.bert.config.hidden_size
        self.gate = nn.Sequential(nn.Dropout(0.1), nn.Linear(width, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1))
        self.record = _PairHead(width)
        self.namespace = _PairHead(width)
        self.scale = float(width) ** 0.5

    def encode(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return one unit vector per text: the mean over tokens, as the exported graph computes it."""
        hidden = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return F.normalize(mean, dim=-1)


class _PairHead(nn.Module):
    """A scaled cosine plus a correction from the vectors' product and difference."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(10.0))
        self.shift = nn.Parameter(torch.tensor(-4.0))
        self.correction = nn.Sequential(nn.Linear(2 * width, 64), nn.ReLU(), nn.Linear(64, 1))
        nn.init.zeros_(self.correction[-1].weight)
        nn.init.zeros_(self.correction[-1].bias)

    def forward(self, turns: torch.Tensor, subjects: torch.Tensor) -> torch.Tensor:
        left = turns[:, None].expand(-1, len(subjects), -1)
        right = subjects[None].expand(len(turns), -1, -1)
        pair = torch.cat([left * right, (left - right).abs()], -1) * 20
        return self.scale * (turns @ subjects.T) + self.shift + self.correction(pair)[..., 0]


class Texts:
    """Tokenises and pads."""

    def __init__(self, checkpoint: Path) -> None:
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(checkpoint / "tokenizer.json")).backend_tokenizer
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer

    def batch(self, texts: Sequence[str], limit: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return token ids and mask, cut at `limit` tokens."""
        rows = [self._cut(self._tokenizer.encode(text).ids, limit) for text in texts]
        ids = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
        mask = torch.zeros(ids.shape)
        for at, row in enumerate(rows):
            ids[at, : len(row)] = torch.tensor(row)
            mask[at, : len(row)] = 1
        return ids, mask

    @staticmethod
    def _cut(ids: list[int], limit: int) -> list[int]:
        return ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]]


def examples(persona: Persona, texts: Texts, pick: random.Random) -> dict[str, Any]:
    """Return one persona as tensors: texts, and a label per turn, per turn and record, per turn and namespace."""
    records, names = list(persona.records), list(persona.descriptions)
    described = [pick.choice(persona.descriptions[name]) for name in names]
    return {
        "turns": texts.batch([turn_text(turn.text, turn.previous) for turn in persona.turns], TURN_TOKENS),
        "records": texts.batch([persona.records[name] for name in records], RECORD_TOKENS),
        "namespaces": texts.batch(described, RECORD_TOKENS),
        "needed": torch.tensor([float(turn.needed) for turn in persona.turns]),
        "pairs": persona.pairs(),
        "grades": torch.tensor([[turn.grades.get(name, 0) for name in records] for turn in persona.turns]),
        "in_namespace": torch.tensor([[float(name in turn.namespaces) for name in names] for turn in persona.turns]),
    }


def loss_of(model: Decisions, batch: dict[str, Any]) -> torch.Tensor:
    """Return the sum of the three decisions' losses and of the ranking of records within each turn."""
    turns, records = model.encode(*batch["turns"]), model.encode(*batch["records"])
    namespaces = model.encode(*batch["namespaces"])
    needed, grades = batch["needed"], batch["grades"]
    opened = model.gate(turns * model.scale)[:, 0]
    weight = torch.ones_like(needed)
    weight[[at for pair in batch["pairs"] for at in pair]] = PAIR_WEIGHT
    gate = F.binary_cross_entropy_with_logits(opened, needed, weight=weight)
    for wanted, other in batch["pairs"]:
        gate = gate + 0.5 * F.softplus(opened[other] - opened[wanted]) / len(batch["pairs"])
    logits = model.record(turns, records)
    target, importance = (sum(table[g] * (grades == g) for g in (0, 1, 2)) for table in (TARGET, LIST_WEIGHT))
    judged = F.binary_cross_entropy_with_logits(logits, target, weight=1 + 2.0 * (grades == 2) + 0.5 * (grades == 1))
    ranked = (grades > 0).any(1)
    share = importance / importance.sum(1, keepdim=True).clamp(min=1e-6)
    ranking = -(share * F.log_softmax(logits, 1)).sum(1)[ranked].mean()
    routed = F.binary_cross_entropy_with_logits(
        model.namespace(turns, namespaces)[needed > 0], batch["in_namespace"][needed > 0]
    )
    return gate + 2 * judged + 0.3 * ranking + 0.5 * routed


def train(personas: Sequence[Persona], checkpoint: Path, epochs: int, seed: int) -> Decisions:
    """Fine-tune; prints one line an epoch."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    order = random.Random(seed)
    texts, model = Texts(checkpoint), Decisions(checkpoint)
    encoder = list(model.bert.parameters())
    heads = [*model.gate.parameters(), *model.record.parameters(), *model.namespace.parameters()]
    optimizer = torch.optim.AdamW(
        [{"params": encoder, "lr": ENCODER_RATE}, {"params": heads, "lr": HEAD_RATE}], weight_decay=0.01
    )
    steps = epochs * len(personas)
    warm = max(1, steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, max(0.0, (steps - step) / max(1, steps - warm)))
    )
    model.train()
    for epoch in range(epochs):
        started, total = time.monotonic(), 0.0
        shuffled = list(personas)
        order.shuffle(shuffled)
        for persona in shuffled:
            loss = loss_of(model, examples(persona, texts, order))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(
            f"epoch {epoch + 1}/{epochs} loss {total / len(personas):.3f} in {time.monotonic() - started:.0f} s",
            flush=True,
        )
    return model


def main() -> None:
    """Fine-tune on the train split and write the checkpoint."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, default=None, help="default: all-MiniLM-L6-v2")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--share", type=float, default=1.0, help="train on this share of the personas, 0..1")
    options = parser.parse_args()
    checkpoint: Path = options.checkpoint or default_checkpoint()
    personas = [one for one in read_personas(options.corpus) if one.split == "train"]
    random.Random(options.seed).shuffle(personas)  # a share is of all authors, and a smaller one is part of a larger
    personas = personas[: max(1, round(options.share * len(personas)))]
    print(f"{len(personas)} personas, {sum(len(one.turns) for one in personas)} turns", flush=True)
    model = train(personas, checkpoint, options.epochs, options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    model.bert.save_pretrained(options.out)
    shutil.copy(checkpoint / "tokenizer.json", options.out)


if __name__ == "__main__":
    main()
