"""Summaries as AgentCore writes them: sibling `<topic name="...">` tags, with or without wrappers.

The text looks like XML and often is not well formed, so it is read tag by tag and nothing has to close. Each
topic becomes "<name>: <text>". Tags of an episode become the fields of an object, tags we do not know stay text.
"""

from __future__ import annotations

import html
import re
from itertools import zip_longest
from typing import NamedTuple

from .json_text import Child, Json
from .objects import IDS, spelling, within_bound
from .phrasing import joined, labelled

_WRAPPERS = "topics|summary|summaries|short_summary|detailed_delta_summary|delta_summary|detailed_summary|episode"
_EPISODE = (
    "situation|intent|user_intent|action|thought|assessment|assessment_assistant|assessment_user|justification"
    "|reflection|operator|id|title|use_cases|hints|confidence|turns|turn"
)
_TELLING_TAGS = frozenset({"situation", "justification", "use_cases", "hints", "assessment", "reflection"})
_SHAPE = re.compile(rf"<(?:topic|language|situation|reflection|{_WRAPPERS})(?=[\s/>])", re.IGNORECASE)
_TOPIC = re.compile(r"<\s{0,3}topic(?=[\s/>])", re.IGNORECASE)
_NAMED_TOPIC = re.compile(r"<topic\s{1,3}name\s{0,3}=", re.IGNORECASE)
_SUMMARY_TAG = re.compile(rf"<\s{{0,3}}(/?)\s{{0,3}}(topic|language|{_WRAPPERS})(?=[\s/>])", re.IGNORECASE)
_EPISODE_TAG = re.compile(rf"<\s{{0,3}}(/?)\s{{0,3}}(language|{_WRAPPERS}|{_EPISODE})(?=[\s/>])", re.IGNORECASE)
_SILENT_TAGS = frozenset({"operator", "id", "language"})
"""Tags whose content says nothing about the user."""
_FIELD_TAGS = frozenset(_EPISODE.split("|")) - _SILENT_TAGS
_QUOTED_END = {'"': re.compile(r'"\s{0,3}/?>'), "'": re.compile(r"'\s{0,3}/?>")}
_SILENT_ATTRIBUTES = IDS | {"lang", "language", "xml:lang", "name", "title"}
_DATE = re.compile(r"\d{4}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_ATTRIBUTE = re.compile(r"""\b(?P<key>[\w-]{1,40})\s{0,3}=\s{0,3}(?P<quote>["']?)""")
_NEXT_ATTRIBUTE = re.compile(r"""["']\s{1,3}[\w-]{1,40}\s{0,3}=""")
_NEXT_UNQUOTED = re.compile(r"""\s{1,3}[\w-]{1,40}\s{0,3}=""")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


class _Tag(NamedTuple):
    """One tag and the text up to the next one; the text before the first tag has the name ""."""

    name: str
    closes: bool
    label: str
    """The name attribute, or the first attribute of a tag without one; the others in brackets."""
    text: str


def is_topics(text: str) -> bool:
    """Tell whether a text starts with a tag of a summary or names a topic somewhere."""
    return bool(_SHAPE.match(text.lstrip()) or _NAMED_TOPIC.search(text))


def render(text: str, child: Child) -> str:
    """Return a summary as a line.

    Args:
        text: Text for which `is_topics` holds; entities in it are decoded once.
        child: Renders the text of one topic.
    """
    if not _TOPIC.search(text):
        tags = _tags(text, _EPISODE_TAG)
        if any(tag.name in _TELLING_TAGS for tag in tags):
            return _episode(tags, child)
    topics: list[tuple[str, list[str]]] = [("", [])]
    for tag in _tags(text, _SUMMARY_TAG):
        if tag.name not in ("", "language"):
            topics.append((tag.label, []))
        topics[-1][1].append(tag.text)
    return joined(labelled(child(label), child(" ".join(texts).strip())) for label, texts in topics)


def _episode(tags: list[_Tag], child: Child) -> str:
    """Read the tags of an episode or a reflection as the fields of one object."""
    fields: dict[str, Json] = {}
    rest: list[str] = []
    turns: list[str] = []
    in_turns = False
    for tag in tags:
        if tag.name in ("turn", "turns"):
            in_turns = bool(fields) and not tag.closes
        if not tag.text.strip():
            continue
        if in_turns:
            turns.append(tag.text)
        elif not tag.closes and tag.name in _FIELD_TAGS and tag.name not in fields:
            fields[tag.name] = tag.text
        else:
            rest.append(tag.text)
    return joined([child(fields), *map(child, rest), within_bound([child(turn) for turn in turns])])


def _tags(text: str, pattern: re.Pattern[str]) -> list[_Tag]:
    """Return the known tags in order; a tag reaches at most to the next known one, so this is linear.

    What a silent tag holds is left out, if the tag closes at once: else it may hold the whole summary.
    """
    matches = list(pattern.finditer(text))
    tags = [_Tag("", False, "", _decoded(text[: matches[0].start()] if matches else text))]
    for match, after in zip_longest(matches, matches[1:]):
        name, closes = match[2].casefold(), bool(match[1])
        attributes, inner = _split(text[match.end() : after.start() if after else len(text)])
        if name in _SILENT_TAGS and not closes and after and after[1] and after[2].casefold() == name:
            inner = ""
        tags.append(_Tag(name, closes, "" if closes else _decoded(_label(attributes)), _decoded(inner)))
    return tags


def _split(rest: str) -> tuple[str, str]:
    """Split what follows a tag's name into its attributes and the text after its end."""
    close = rest.find(">")
    quotes = [place for place in (rest.find('"'), rest.find("'")) if place >= 0]
    if quotes and (close < 0 or min(quotes) < close):
        end = _QUOTED_END[rest[min(quotes)]].search(rest, min(quotes) + 1)
        if end:
            return rest[: end.start() + 1], rest[end.end() :]
    if close < 0:
        return "", rest
    return rest[:close], rest[close + 1 :]


def _label(attributes: str) -> str:
    values = _values(attributes)
    named = next((name for name in ("name", "title", *values) if name in values), None)
    if named is None:
        return ""
    others = [
        value if _DATE.match(value) else f"{key.replace('_', ' ')}: {value}"
        for key, value in values.items()
        if key not in (named, *_SILENT_ATTRIBUTES) and value
    ]
    return f"{values[named]} ({', '.join(others)})" if others and values[named] else values[named]


def _values(attributes: str) -> dict[str, str]:
    """Return a tag's attributes by spelling; quotes may stand inside a value, or be left out."""
    values: dict[str, str] = {}
    match = _ATTRIBUTE.search(attributes)
    while match:
        following = (_NEXT_ATTRIBUTE if match["quote"] else _NEXT_UNQUOTED).search(attributes, match.end())
        value = attributes[match.end() : following.start() + len(match["quote"]) if following else None].rstrip(" /")
        values.setdefault(spelling(match["key"]), value.removesuffix(match["quote"]))
        match = _ATTRIBUTE.search(attributes, following.start() + 1) if following else None
    return values


def _decoded(text: str) -> str:
    return _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
