"""Train the sentence encoder and the heads of the embedded model, all decisions at once.

    python -m harness.training.finetune --corpus harness/training/corpus --out CHECKPOINT

One step is one store (or persona) and some messages. The store's queries and records are encoded once and every query
is compared with every record, so the negatives are the same store's other records, which is what retrieval returns.
Long texts are read in parts, of which the best counts, as at run time (`embedded.reading`). Written: a checkpoint
folder for `export`, with the mean of the weights over the last steps; `OUT/state.pt` lets a run that was stopped go on
where it was. Needs torch; seeded.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import random
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from transformers import BertModel, PreTrainedTokenizerFast

from strands_gated_memory.embedded.reading import record_parts, turn_text, turns_of

from .export import HEADS, default_checkpoint
from .personas import Ask, Message, Persona, read_messages, read_personas, read_stores

SEED = 7
EPOCHS = 4
ENCODER_RATE = 8e-5
HEAD_RATE = 1e-3
HIDDEN = 64
"""Units of each head's hidden layer."""
TOKENS = 192
"""Most tokens of a text in training; the encoder reads 256."""
MOST_QUERIES = 40
"""Most turns of a persona in one step, picked at random: bounds its memory."""
AVERAGED = 0.99
"""How much of the mean of the weights a step leaves as it is."""
SAVE_EVERY = 25
"""Steps between two savings of the state."""
TARGET = {0: 0.0, 1: 0.5, 2: 0.97}
"""Probability that a grade stands for; 1 may be in the prompt, 2 must."""
RECORD_WEIGHT = {0: 1.0, 1: 1.5, 2: 3.0}
LIST_WEIGHT = {0: 0.0, 1: 0.35, 2: 1.0}
PAIR_WEIGHT = 3.0
"""What a text weighs for the gate that another is like, with another label."""
DOUBTFUL_WEIGHT = 0.3
"""What a store's query weighs for the gate when no record has grade 2: it may have asked for what is not there."""
LIMIT_WEIGHT = 2.0
"""What a needed record weighs that states a limit and has no word in common with the query."""
RENAMED = 0.3
"""Share of the stores whose subject ("The user") is named otherwise, or left out, in one step."""
NAMES = ("Tomasz", "Ana", "Mr Okafor", "Priya", "Jo", "the client", "Mei", "Dr Lindqvist", "Sam", "User", "he", "she")
"""Subjects in place of "The user"; the name of the persona is used where it is known."""


class Decisions(nn.Module):
    """The encoder and a small head per decision."""

    def __init__(self, checkpoint: Path) -> None:
        super().__init__()
        self.bert: Any = BertModel.from_pretrained(checkpoint, add_pooling_layer=False)
        # Too few of the words occur here to move them: the others would stay behind.
        self.bert.embeddings.word_embeddings.weight.requires_grad_(False)
        width = self.bert.config.hidden_size
        self.heads = nn.ModuleDict(
            {"gate": _GateHead(width), "namespace": _PairHead(width), "record": _PairHead(width)}
        )
        if (checkpoint / HEADS).exists():
            self.heads.load_state_dict(torch.load(checkpoint / HEADS, weights_only=True))

    def encode(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return one unit vector per text: the mean over tokens, as the exported graph computes it."""
        hidden = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return F.normalize(mean, dim=-1)


class _GateHead(nn.Module):
    """A hidden layer over a turn's vector."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = math.sqrt(width)
        self.layers = nn.Sequential(
            nn.Dropout(0.1), nn.Linear(width, HIDDEN), nn.ReLU(), nn.Dropout(0.1), nn.Linear(HIDDEN, 1)
        )

    def forward(self, turns: torch.Tensor) -> torch.Tensor:
        return self.layers(turns * self.scale)[:, 0]  # type: ignore[no-any-return]

    def stored(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return the layers, weights (inputs, outputs) and biases, for the block "turn"."""
        first, last = self.layers[1], self.layers[4]
        return [(first.weight.T * self.scale, first.bias), (last.weight.T, last.bias)]


class _PairHead(nn.Module):
    """A scaled cosine plus a correction from the vectors' product and difference."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(10.0))
        self.shift = nn.Parameter(torch.tensor(-4.0))
        self.correction = nn.Sequential(nn.Linear(2 * width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))
        nn.init.zeros_(self.correction[-1].weight)
        nn.init.zeros_(self.correction[-1].bias)

    def forward(self, turns: torch.Tensor, subjects: torch.Tensor) -> torch.Tensor:
        left = turns[:, None].expand(-1, len(subjects), -1)
        right = subjects[None].expand(len(turns), -1, -1)
        pair = torch.cat([left * right, (left - right).abs()], -1) * 20
        return self.scale * (turns @ subjects.T) + self.shift + self.correction(pair)[..., 0]  # type: ignore[no-any-return]

    def stored(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return the layers for the blocks "turn.subject", "turn*subject" and "turn~subject".

        The cosine goes through the hidden layer in a unit of its own: 1 + cosine is never negative.
        """
        first, last = self.correction[0], self.correction[2]
        width = first.weight.shape[1]
        weight = torch.zeros(1 + width, 1 + HIDDEN)
        weight[0, 0] = 1.0
        weight[1:, 1:] = first.weight.T * 20
        out = torch.cat([self.scale.reshape(1, 1), last.weight.T])
        return [
            (weight, torch.cat([torch.ones(1), first.bias])),
            (out, last.bias + self.shift - self.scale),
        ]


class Texts:
    """Tokenises and pads."""

    def __init__(self, checkpoint: Path) -> None:
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(checkpoint / "tokenizer.json")).backend_tokenizer
        tokenizer.no_padding()
        tokenizer.enable_truncation(TOKENS)
        self._tokenizer = tokenizer

    def vectors(self, model: Decisions, texts: Sequence[str]) -> torch.Tensor:
        """Return a vector per text. Texts of like length go through the encoder together, so little is padded."""
        rows = [self._tokenizer.encode(text).ids for text in texts]
        order = sorted(range(len(rows)), key=lambda at: len(rows[at]))
        found = []
        for start in range(0, len(order), 24):
            batch = [rows[at] for at in order[start : start + 24]]
            ids = torch.zeros(len(batch), len(batch[-1]), dtype=torch.long)
            mask = torch.zeros(ids.shape)
            for line, row in enumerate(batch):
                ids[line, : len(row)] = torch.tensor(row)
                mask[line, : len(row)] = 1
            found.append(model.encode(ids, mask))
        place = torch.empty(len(order), dtype=torch.long)
        place[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat(found)[place]


@dataclass(frozen=True)
class Step:
    """What one step of the training sees.

    Attributes:
        store: A persona or a store.
        turns: Some of its turns.
        messages: Some messages.
    """

    store: Persona
    turns: Sequence[Ask]
    messages: Sequence[Message]


def restyled(store: Persona, pick: random.Random) -> list[str]:
    """Return the records, now and then with another subject: a fact must not weigh more for being "The user"'s."""
    records = list(store.records.values())
    if pick.random() > RENAMED:
        return records
    subject = pick.choice(["", "", store.name or pick.choice(NAMES), store.name.split(" ")[0] or pick.choice(NAMES)])
    if not subject:
        return [_capital(re.sub(r"^The user(?: is| has|'s)? ", "", text)) for text in records]
    return [_capital(re.sub(r"\b[Tt]he user\b", subject, text)) for text in records]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _words(text: str) -> set[str]:
    return {word[:5] for word in re.findall(r"[^\W\d_]{4,}", text.lower())}


def _longest(parts: Sequence[Sequence[str]]) -> tuple[list[str], torch.Tensor]:
    """Return all parts in one list, and for each the row it belongs to."""
    return [text for row in parts for text in row], torch.tensor([at for at, row in enumerate(parts) for _ in row])


def _best(values: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return the largest value per row along the first dimension."""
    shape = (int(rows[-1]) + 1, *values.shape[1:])
    index = rows.reshape(-1, *[1] * (values.dim() - 1)).expand_as(values)
    return values.new_full(shape, -math.inf).scatter_reduce(0, index, values, "amax")


def loss_of(model: Decisions, texts: Texts, step: Step, pick: random.Random) -> torch.Tensor:
    """Return the sum of the three decisions' losses and of the rankings within the step."""
    store, asked = step.store, [*step.turns, *step.messages]
    names = list(store.descriptions)
    records = restyled(store, pick)
    said, turn_rows = _longest([[turn_text(*turn) for turn in turns_of(ask.text, ask.previous)] for ask in asked])
    held, record_rows = _longest([record_parts(text) for text in records])
    described = [pick.choice(store.descriptions[name]) for name in names]
    vectors = texts.vectors(model, [*said, *held, *described])
    turns, subjects, namespaces = vectors.split([len(said), len(held), len(described)])
    opened = _best(model.heads["gate"](turns), turn_rows)
    of_store = int((turn_rows < len(step.turns)).sum())
    by_part = model.heads["record"](turns[:of_store], subjects)
    logits = _best(_best(by_part, turn_rows[:of_store]).T, record_rows).T
    routed = _best(model.heads["namespace"](turns, namespaces), turn_rows)
    return (
        _gate_loss(opened, asked, _pairs(step))
        + _record_loss(logits, step, records)
        + 0.5 * _route_loss(routed, asked, names)
    )


def _pairs(step: Step) -> list[tuple[int, int]]:
    """Return positions of turns and messages that are much alike: the first needs memory, the second does not."""
    found = [(a, b) for a, one in enumerate(step.turns) for b, two in enumerate(step.turns) if one.text == two.text]
    start = len(step.turns)
    found += [
        (start + a, start + b)
        for a, one in enumerate(step.messages)
        for b, two in enumerate(step.messages)
        if one.pair and one.pair == two.pair
    ]
    asked = [*step.turns, *step.messages]
    return [(a, b) for a, b in found if asked[a].needed and not asked[b].needed]


def _gate_loss(opened: torch.Tensor, asked: Sequence[Ask | Message], pairs: Sequence[tuple[int, int]]) -> torch.Tensor:
    needed = torch.tensor([float(ask.needed) for ask in asked])
    weight = torch.tensor(
        [DOUBTFUL_WEIGHT if isinstance(ask, Ask) and not (ask.needed or ask.category) else 1.0 for ask in asked]
    )
    weight[sorted({at for pair in pairs for at in pair})] = PAIR_WEIGHT
    loss = (F.binary_cross_entropy_with_logits(opened, needed, reduction="none") * weight).sum() / weight.sum()
    if pairs:
        wanted, other = (opened[list(side)] for side in zip(*pairs, strict=True))
        loss = loss + 0.5 * F.softplus(other - wanted).mean()
    return 1.5 * loss


def _record_loss(logits: torch.Tensor, step: Step, records: Sequence[str]) -> torch.Tensor:
    names = list(step.store.records)
    grades = torch.tensor([[turn.grades.get(name, 0) for name in names] for turn in step.turns])

    def of(table: Mapping[int, float]) -> torch.Tensor:
        return sum(value * (grades == grade) for grade, value in table.items())  # type: ignore[return-value]

    unlike = torch.ones(grades.shape)
    words = [_words(text) for text in records]
    for row, turn in enumerate(step.turns):
        asked = _words(turn.text)
        for column, name in enumerate(names):
            if name in step.store.limits and grades[row, column] and not asked & words[column]:
                unlike[row, column] = LIMIT_WEIGHT
    judged = F.binary_cross_entropy_with_logits(logits, of(TARGET), weight=of(RECORD_WEIGHT) * unlike)
    importance = of(LIST_WEIGHT) * unlike
    ranked = (grades > 0).any(1)
    if not ranked.any():
        return 2 * judged
    share = importance / importance.sum(1, keepdim=True).clamp(min=1e-6)
    # Against the records of no bearing alone: two that are needed do not compete with one another.
    others = torch.logsumexp(logits.masked_fill(grades > 0, -1e9), 1, keepdim=True)
    ranking = (share * F.softplus(others - logits)).sum(1)[ranked].mean()
    return 2 * judged + 0.4 * ranking


def _route_loss(routed: torch.Tensor, asked: Sequence[Ask | Message], names: Sequence[str]) -> torch.Tensor:
    # Stores and messages name the four usual namespaces; a persona's own are its turns' alone.
    usual = {"facts", "preferences", "summaries", "episodes"}
    rows = [at for at, ask in enumerate(asked) if ask.needed and (isinstance(ask, Ask) or usual.issuperset(names))]
    if not rows:
        return routed.sum() * 0
    wanted = torch.tensor([[float(name in asked[at].namespaces) for name in names] for at in rows])
    return F.binary_cross_entropy_with_logits(routed[rows], wanted)


def steps_of(stores: Sequence[Persona], messages: Sequence[Message], pick: random.Random) -> Iterator[Step]:
    """Yield the steps of one epoch: every store once, every message once, pairs together."""
    groups: dict[str, list[Message]] = {}
    for at, message in enumerate(messages):
        groups.setdefault(message.pair or str(at), []).append(message)
    queue = list(groups.values())
    pick.shuffle(queue)
    order = list(stores)
    pick.shuffle(order)
    for at, store in enumerate(order):
        chunk = queue[at * len(queue) // len(order) : (at + 1) * len(queue) // len(order)]
        turns = store.turns if len(store.turns) <= MOST_QUERIES else pick.sample(store.turns, MOST_QUERIES)
        yield Step(store, turns, [message for group in chunk for message in group])


def train(
    stores: Sequence[Persona], messages: Sequence[Message], checkpoint: Path, out: Path, *, total: int, rate: float
) -> Decisions:
    """Train for so many steps in all, or go on with what `out` holds; prints lines as it goes."""
    torch.manual_seed(SEED)
    texts, model = Texts(checkpoint), Decisions(checkpoint)
    trained = [value for value in model.parameters() if value.requires_grad]
    own = {id(value) for value in model.heads.parameters()}
    optimizer = torch.optim.AdamW(
        [
            {"params": [value for value in trained if id(value) not in own], "lr": rate},
            {"params": [value for value in trained if id(value) in own], "lr": HEAD_RATE * rate / ENCODER_RATE},
        ],
        weight_decay=0.01,
        fused=True,
    )
    warm = max(1, total // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, max(0.05, (total - step) / max(1, total - warm)))
    )
    averaged = [value.detach().clone() for value in trained]
    done, state, corpus = 0, out / "state.pt", _digest(stores, messages)
    if state.exists():
        saved = torch.load(state, weights_only=True)
        if saved["corpus"] != corpus:
            raise SystemExit(f"{state} is of a run on another corpus; remove it to begin anew")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        schedule.load_state_dict(saved["schedule"])
        averaged, done = saved["averaged"], saved["done"]
        print(f"goes on after step {done} of {total}", flush=True)
    model.train()
    started, losses = time.monotonic(), 0.0
    for epoch in range(-(-total // len(stores))):
        pick = random.Random(f"{SEED} {epoch}")
        for at, step in enumerate(steps_of(stores, messages, pick), epoch * len(stores)):
            if at < done or at >= total:
                continue
            loss = loss_of(model, texts, step, random.Random(f"{SEED} {at}"))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            schedule.step()
            kept = min(AVERAGED, at / (at + 10))
            torch._foreach_lerp_(averaged, [value.detach() for value in trained], 1 - kept)
            losses += loss.item()
            done = at + 1
            if done % SAVE_EVERY == 0 or done == total:
                print(
                    f"step {done}/{total} loss {losses / SAVE_EVERY:.3f} {time.monotonic() - started:.0f} s", flush=True
                )
                losses = 0.0
                _save(state, model, optimizer, schedule, averaged=averaged, done=done, corpus=corpus)
    for value, mean in zip(trained, averaged, strict=True):
        value.data.copy_(mean)
    return model.eval()


def _digest(stores: Sequence[Persona], messages: Sequence[Message]) -> str:
    texts = [text for store in stores for text in (store.key, *store.records.values(), *(t.text for t in store.turns))]
    texts += [message.text for message in messages]
    return hashlib.sha256("\n".join(texts).encode("utf-8", "replace")).hexdigest()


def _save(path: Path, model: Decisions, optimizer: Any, schedule: Any, **progress: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
    state = {name: part.state_dict() for name, part in parts.items()}
    torch.save({**state, **progress}, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)  # a run that is stopped while writing leaves the old one


def main() -> None:
    """Train on the train split and write the checkpoint."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, default=None, help="default: all-MiniLM-L6-v2")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--steps", type=int, default=None, help="so many steps in all, instead of whole epochs")
    parser.add_argument("--rate", type=float, default=ENCODER_RATE, help="learning rate of the encoder")
    parser.add_argument("--share", type=float, default=1.0, help="train on this share of the corpus, 0..1")
    options = parser.parse_args()
    checkpoint: Path = options.checkpoint or default_checkpoint()
    stores = [one for one in read_personas(options.corpus) if one.split == "train"]
    stores += read_stores(options.corpus, "train")
    messages = [one for one in read_messages(options.corpus, "train") if one.language == "en"]
    order = random.Random(SEED)  # a share is of all authors, and a smaller one is part of a larger
    for rows in (stores, messages):
        order.shuffle(rows)
        del rows[max(1, round(options.share * len(rows))) :]
    print(f"{len(stores)} stores, {sum(len(one.turns) for one in stores)} turns, {len(messages)} messages", flush=True)
    total = options.steps or options.epochs * len(stores)
    model = train(stores, messages, checkpoint, options.out, total=total, rate=options.rate)
    model.bert.save_pretrained(options.out)
    torch.save(model.heads.state_dict(), options.out / HEADS)
    shutil.copy(checkpoint / "tokenizer.json", options.out)


if __name__ == "__main__":
    main()
