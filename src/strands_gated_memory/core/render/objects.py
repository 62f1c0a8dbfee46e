"""JSON objects: the first shape whose fields an object has makes a line of it, then whatever else it says follows.

- An episode becomes "<situation>: <intent>; <outcome>; <reflection>; <its steps, within a bound>", the reflection on
  several "<title>: <use cases>; <hints>".
- A preference goes with its context. One that names an occasion comes first ("Ordering tea: No milk"), one that tells
  where the preference is known from comes after, in brackets.
- A fact, and any object that only carries one text, is that text.
- All others are "key: value; key: value", in the order in which they were written.

No word is added but keys, so a record keeps its language. Nulls vanish, and a key without a value says nothing. A bare
term gets its category as a label: "Coriander", filed under "dislikes", reads as something that the user likes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from .characters import one_line, scalar
from .context import capitalised, has_finite_verb, is_occasion
from .json_text import Child, Json
from .phrasing import ends_sentence, joined, labelled

_CATEGORIES = ("category", "categories")
IDS = frozenset(
    {"id", "uuid", "guid", "record_id", "memory_id", "memory_record_id", "fact_id", "preference_id", "episode_id"}
    | {"reflection_id", "entry_id", "chunk_id", "embedding_id", "vector_id", "point_id", "node_id", "hash"}
    | {"memory_strategy_id", "strategy_id", "request_identifier"}
)
"""Keys by which a store finds a record again. Others that end in "id", such as an order's, a user may ask for."""
_LABELS = IDS | {*_CATEGORIES, "confidence", "language", "lang"}
"""Keys that file or rate a record and say nothing about the user by themselves; no known shape lists them."""

_TEXTS = ("fact", "value", "text", "content", "description", "setting", "summary")
_PREFERENCES = ("preference", *_TEXTS)
_CARRIERS = frozenset({*_TEXTS, "facts", "memory", "memories", "preferences", "records"})

_SITUATION = ("situation", "description")
_INTENT = ("intent", "user_intent", "goal")
_VERDICT = ("assessment", "assessment_user", "assessment_assistant")
_OUTCOME = ("justification", "finding", "outcome", "result")
_LESSON = ("reflection", "lesson", "lessons")
_ACT = ("action", "thought")
_EPISODE = frozenset((*_SITUATION, *_INTENT, *_VERDICT, *_OUTCOME, *_LESSON, *_ACT))
_TELLING = frozenset({"situation", "intent", "user_intent", *_VERDICT, "justification", "finding", "reflection"})
_REFLECTION = frozenset({"title", "use_cases", "hints"})
_STEPS = ("turns", "steps", "actions")
_STEPS_CHARACTERS = 600
"""How much of an episode's steps is kept: the first ones, whole."""
_STEPS_LEVELS = 4
"""How deep steps of steps are read as episodes; what lies deeper is read as any value."""
_YES = frozenset({"yes", "true", "ja", "sí", "si", "oui", "sim", "да", "はい", "是", "예", "네", "نعم"})
_NO = frozenset({"no", "false", "nein", "non", "não", "нет", "いいえ", "否", "아니요", "لا", "partial", "partially"})

_MOST_WORDS = 4
_MOST_CHARACTERS = 48
_MOST_UNSPACED = 8
"""Characters of a term in a script that puts no spaces between words; more may be a sentence."""
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")
_SAYS_HOW = re.compile(r"\b(?:no|not|never|without|only|always|avoid\w*|kein\w*|sin|sans|senza|sem)\b", re.IGNORECASE)
_ATTITUDE = re.compile(
    r"dislik|hate|allerg|avoid|intoleran|restrict|forbid|taboo|fear|phobi|aversion|\blik|\blov|favou?rit|wish|goal"
    r"|abneig|unvertr|alerg|odi[ao]|aim(?:e|er)\b|déteste",
    re.IGNORECASE,
)
"""Categories that tell how the user stands to a thing; others tell what sort of thing it is."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SPACERS = re.compile(r"[\s_-]+")
_FULL_STOPS = ".。．।۔"

Fields = dict[str, Json]
"""An object's values by the spelling of their keys."""


class _Said(NamedTuple):
    text: str
    keys: frozenset[str]
    """What the text is made of."""
    steps: str = ""
    """What comes after whatever else the object says."""


def spelling(key: str) -> str:
    """Return a key in snake case: "useCases", "Use cases" and "use-cases" are one key, as are "id" and "_id"."""
    return _SPACERS.sub("_", _CAMEL.sub("_", key.strip())).strip("_").casefold()


def render(record: dict[str, Json], child: Child) -> str:
    """Return an object as a line.

    Args:
        record: Any object.
        child: Renders one value.
    """
    fields = _by_spelling(record)
    shape = next((shape for fits, shape in _SHAPES if fits(fields)), None)
    return _shaped(record, fields, shape, child) if shape else _pairs(record, child)


def leaves(value: Json) -> str:
    """Return all that is in a value too deep to render by shape: its texts, with their nearest keys, in order."""
    lines: list[str] = []
    waiting: list[tuple[str, Json]] = [("", value)]
    while waiting:
        key, current = waiting.pop()
        if isinstance(current, dict):
            waiting.extend(reversed(list(current.items())))
        elif isinstance(current, list):
            waiting.extend((key, item) for item in reversed(current))
        else:
            lines.append(_pair(key, scalar(current)))
    return joined(lines)


def within_bound(steps: list[str]) -> str:
    """Return the first of an episode's steps, as many as fit, in one line; of a single long one its start."""
    kept: list[str] = []
    left = _STEPS_CHARACTERS
    for step in filter(None, steps):
        if len(step) > left:
            kept.append("…" if kept else step[:left].rsplit(" ", 1)[0] + "…")
            break
        kept.append(step)
        left -= len(step)
    return joined(kept)


def _by_spelling(record: dict[str, Json]) -> Fields:
    """Return the object with its keys in snake case; of two that meet, the first with a value stays."""
    fields: Fields = {}
    for key, value in record.items():
        name = spelling(key)
        if fields.get(name) in (None, "", [], {}):
            fields[name] = value
    return fields


def _shaped(record: dict[str, Json], fields: Fields, shape: Callable[[Fields, Child], _Said], child: Child) -> str:
    said = shape(fields, child)
    known = _LABELS | said.keys
    rest = {key: value for key, value in record.items() if spelling(key) not in known}
    text = joined([said.text, _pairs(rest, child), said.steps])
    confidence = child(fields.get("confidence"))
    return joined([text, f"confidence: {confidence}"]) if text and confidence else text


def _reflection(fields: Fields, child: Child) -> _Said:
    body = joined(child(fields.get(key)) for key in ("use_cases", "hints"))
    return _Said(labelled(child(fields.get("title")), body), _REFLECTION | {"operator"})


def _episode(fields: Fields, child: Child, levels: int = _STEPS_LEVELS) -> _Said:
    def slot(names: tuple[str, ...]) -> str:
        """Return the aliases of one slot that hold something, mostly one."""
        return joined(child(fields.get(name)) for name in names)

    verdict, outcome = slot(_VERDICT), slot(_OUTCOME)
    bare = verdict.casefold().rstrip(".!")
    if bare in _YES and outcome:  # says the same in words
        verdict = ""
    elif bare in _YES | _NO:
        verdict = f"assessment: {verdict}"
    body = joined([slot(_INTENT), joined([verdict, outcome]), slot(_ACT), slot(_LESSON)])
    steps = [_step(step, child, levels) for key in _STEPS for step in _listed(fields.get(key))]
    return _Said(labelled(slot(_SITUATION), body), _EPISODE | {*_STEPS, "operator"}, within_bound(steps))


def _step(step: Json, child: Child, levels: int) -> str:
    """Return a step as an episode, whichever of its fields it has."""
    if isinstance(step, dict) and levels:
        return _shaped(step, _by_spelling(step), partial(_episode, levels=levels - 1), child)
    return child(step)


def _preference(fields: Fields, child: Child) -> _Said:
    context = child(fields.get("context"))
    name, text = next(((key, text) for key in _PREFERENCES if (text := child(fields.get(key)))), ("preference", ""))
    occasion = bool(context) and is_occasion(context)
    text = _with_category(text, fields, child, labelled_already=occasion)
    if not text or not context or context.casefold() == text.casefold():
        line = text or context
    elif occasion:
        line = labelled(capitalised(context), text)
    else:
        line = f"{text} ({_bare_report(context)})"
    return _Said(line, frozenset({"context", "preference", name}))


def _fact(fields: Fields, child: Child) -> _Said:
    name = "fact" if "fact" in fields else next(key for key in fields if key in _CARRIERS)
    return _Said(_with_category(child(fields[name]), fields, child), frozenset({name}))


_SHAPES: tuple[tuple[Callable[[Fields], bool], Callable[[Fields, Child], _Said]], ...] = (
    (lambda fields: len(fields.keys() & _REFLECTION) > 1, _reflection),
    (
        lambda fields: (
            "situation" in fields
            or isinstance(fields.get("turns"), (list, dict))
            or (len(fields.keys() & _EPISODE) > 1 and not fields.keys().isdisjoint(_TELLING))
        ),
        _episode,
    ),
    (
        lambda fields: "preference" in fields or ("context" in fields and not fields.keys().isdisjoint(_PREFERENCES)),
        _preference,
    ),
    (
        lambda fields: "fact" in fields or (len(rest := fields.keys() - _LABELS) == 1 and rest <= _CARRIERS),
        _fact,
    ),
)
"""What an object of each shape has, and what is made of it; the order counts."""


def _with_category(text: str, fields: Fields, child: Child, *, labelled_already: bool = False) -> str:
    """Return a record's text, with its category as a label where the text is a bare term.

    With an occasion before it ("Food: Coriander"), only a category that tells the user's attitude is added.
    """
    if not all(map(_is_bare, text.split("; "))):
        return text
    filed = [item for key in _CATEGORIES for item in _listed(fields.get(key))]
    given = [item.get("name") if isinstance(item, dict) else item for item in filed]
    names = [name for item in given if isinstance(item, str) and (name := child(item))]
    names = [name for name in names if name.casefold() not in text.casefold()]
    if labelled_already:
        names = [name for name in names if _ATTITUDE.search(name)]
    return labelled(capitalised(", ".join(dict.fromkeys(names))), text)


def _is_bare(text: str) -> bool:
    """Tell whether a text only names something."""
    longest = _MOST_UNSPACED if _UNSPACED.search(text) else _MOST_CHARACTERS
    return (
        0 < len(text.split()) <= _MOST_WORDS
        and len(text) <= longest
        and not ends_sentence(text)
        and not _SAYS_HOW.search(text)
        and not has_finite_verb(text)
    )


def _bare_report(context: str) -> str:
    if context.startswith("(") and context.endswith(")") and context.count("(") == 1:
        context = context[1:-1]
    ends_once = context.endswith(tuple(_FULL_STOPS)) and not context.endswith("..")
    return context[:-1] if ends_once and len(context) > 1 else context


def _pairs(record: dict[str, Json], child: Child) -> str:
    return joined(_pair(key, _value(value, child)) for key, value in record.items())


def _pair(key: str, value: str) -> str:
    """Return "renewal date: <value>" for "renewalDate" and "renewal_date"; "userID" keeps its ID."""
    first, *others = _CAMEL.sub(" ", one_line(key.replace("_", " "))).split() or [""]
    name = " ".join([first, *(word if word.isupper() else word.lower() for word in others)]).rstrip(" :")
    return f"{name}: {value}" if name and value else value


def _value(value: Json, child: Child) -> str:
    """Return a value; objects with several pairs are put in brackets, so they stay together."""
    texts = [child(item) for item in _listed(value)]
    texts = [
        f"({text})" if isinstance(item, dict) and "; " in text else text
        for item, text in zip(_listed(value), texts, strict=True)
        if text
    ]
    plain = all("," not in text and not ends_sentence(text) for text in texts)
    in_brackets = all(text.startswith("(") for text in texts)
    return ", ".join(texts) if plain or in_brackets else joined(texts)


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]
