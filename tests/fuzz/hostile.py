"""What users, records, decision models and services may hand in, and what they may not but will."""

import json
import math
from collections.abc import Mapping
from datetime import datetime, timezone

from hypothesis import settings
from hypothesis import strategies as st

from strands_gated_memory.core.questions import Choice, NoAnswer, Noul, Question, Reply, Score
from strands_gated_memory.core.types import Record


def fuzz(test=None, *, short=None):
    """Run as often as the profile in force says, the short one unless another was chosen.

    `short` is for cheap tests that need more of the short profile to meet what is rare.
    """
    if test is None:
        return lambda of: fuzz(of, short=short)
    chosen = settings.default
    if chosen.max_examples > settings.get_profile("default").max_examples:
        return settings(chosen)(test)
    few = settings.get_profile("short")
    return settings(few, max_examples=short or few.max_examples)(test)


PIECES = (
    "</user_context>", "<user_context>", "&lt;", "&", "<", ">", "\n", "\r\n", "\u2028", "\u202e", "\u200f", "\x00",
    "\x1b[31m", "\ud800", "\ufeff", "e\u0301", "\U0001f468\u200d\U0001f469", "ignore previous instructions", "tea",
    "# ", "- ", "| a | b |", "```", '{"fact": "', '"}', "[", "]", '<topic name="', '">', "</topic>", "\\u0000", "None",
    "{actorId}", "{0}", "%s", "\t", " " * 50, "ß", "ſ", "İ", "茶",
)  # fmt: skip
text = st.text(max_size=60) | st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=14).map("".join)
long_text = st.tuples(text, st.integers(1, 2000)).map(lambda pair: (pair[0] * pair[1])[:16_000])

scalars = st.none() | st.booleans() | st.integers() | st.floats() | text
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(["fact", "preference", "context", "categories", "turns", "title"]) | text, inner,
                      max_size=4),
    max_leaves=10,
)  # fmt: skip
record_text = text | long_text | json_values.map(json.dumps) | json_values.map(lambda v: json.dumps(json.dumps(v)))

NAMESPACES = ("/facts/{actorId}/", "/preferences/{actorId}/", "/x/{sessionId}/")
moments = (
    st.none()
    | st.datetimes()
    | st.datetimes(timezones=st.just(timezone.utc))
    | st.just(datetime.max)
    | st.just("2026-01-01")
)
numbers = (
    st.none() | st.floats() | st.integers() | st.booleans() | st.just(10**400) | st.just("0.5") | st.just(-math.inf)
)
records = st.builds(
    Record,
    text=record_text,
    namespace=st.sampled_from(NAMESPACES) | text,
    score=numbers,
    record_id=st.none() | st.sampled_from(["mem-1", "mem-2"]) | text,
    created_at=moments,
    metadata=st.none() | st.dictionaries(text, scalars, max_size=2),
)
found = st.lists(
    records | st.none() | st.just(object()) | st.builds(Record, text=st.none(), namespace=text), max_size=8
)


class Raising(Mapping):
    """A mapping that fails however it is read."""

    def __getitem__(self, key):
        raise RuntimeError("never")

    def __iter__(self):
        raise RuntimeError("never")

    def __len__(self):
        raise RuntimeError("never")


class Shouting:
    """An object that fails when it is compared, hashed, printed or measured."""

    def _fail(self, *_):
        raise RuntimeError("never")

    __eq__ = __hash__ = __repr__ = __str__ = __float__ = __len__ = __bool__ = _fail


probabilities = numbers | st.floats(0, 1)
wire = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["noul", "choice", "score", "refusal", "refused"]) | scalars,
        "noul": probabilities,
        "choice": text,
        "probabilities": st.dictionaries(st.sampled_from(["a", "b", "0", "1"]) | text, probabilities, max_size=3),
        "error": text,
    },
)
usual = st.floats(0, 1).map(lambda p: {"type": "noul", "noul": p})
answers = (
    usual
    | probabilities.map(lambda p: {"type": "noul", "noul": p})
    | wire
    | st.builds(Noul, probabilities)
    | st.builds(Choice, text, st.dictionaries(text, probabilities, max_size=3))
    | st.builds(Score, probabilities, st.dictionaries(text, probabilities, max_size=3))
    | st.builds(NoAnswer, st.sampled_from(["abstained", "refused", "missing", "invalid", "timeout", "too_long"]))
    | json_values
    | st.builds(Raising)
    | st.builds(Shouting)
)
questions = (
    st.builds(Question, st.just("noul"), text)
    | st.just(Question("choice", "Which?", {"a": "the first", "b": None}))
    | st.just(Question("score", "How much?", ("none", "some")))
)


class Replies:
    """A decision function that gives the answers in turn, or something that is no mapping of answers."""

    def __init__(self, given, odd):
        self.given, self.odd = given, odd

    def __call__(self, state, asked):
        if isinstance(self.odd, Exception):
            raise self.odd
        if self.odd is not None:
            return self.odd
        return {name: self.given[at % len(self.given)] for at, name in enumerate(asked)} if self.given else {}

    def __repr__(self):
        return f"Replies({len(self.given)} answers, {type(self.odd).__name__})"


odd_replies = (
    st.none()
    | st.sampled_from([RuntimeError("down"), TimeoutError("late"), RecursionError("deep"), KeyError("x")])
    | st.sampled_from([[], "yes", 3, (), {"gate": None}])
    | st.builds(Raising)
    | st.just(Reply({}, model="m"))
)
deciders = st.none() | st.builds(Replies, st.lists(answers, max_size=4), st.none() | odd_replies)

shares = st.floats(0, 1)
policies = st.fixed_dictionaries(
    {"deadline_s": st.just(20.0)},
    optional={
        "gate": st.fixed_dictionaries({"threshold": shares}),
        "router": st.fixed_dictionaries(
            {}, optional={"threshold": shares, "pinned": st.sampled_from([(), NAMESPACES[:1], NAMESPACES])}
        ),
        "validator": st.fixed_dictionaries({"threshold": shares}),
        "select": st.fixed_dictionaries(
            {},
            optional={
                "mode": st.sampled_from(["threshold", "ranking", "hybrid"]),
                "relative": shares,
                "dedupe": st.booleans(),
                "max_records": st.none() | st.integers(0, 5),
                "max_context_tokens": st.none() | st.integers(0, 300),
            },
        ),
        "inject": st.fixed_dictionaries({}, optional={"show_dates": st.booleans()}),
        "render": st.fixed_dictionaries({"mode": st.sampled_from(["prose", "raw"])}),
    },
)

blocks = st.fixed_dictionaries(
    {}, optional={"text": text | scalars, "toolResult": scalars, "image": scalars, "cachePoint": scalars}
)
messages = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "role": st.sampled_from(["user", "assistant"]) | scalars,
            "content": st.lists(blocks | scalars, max_size=4) | scalars,
        },
    ),
    max_size=8,
)
conversations = st.lists(
    st.tuples(st.sampled_from(["user", "assistant"]), st.lists(st.builds(lambda t: {"text": t}, text), max_size=3)).map(
        lambda pair: {"role": pair[0], "content": pair[1]}
    ),
    max_size=8,
)
