"""Which namespaces are worth searching? What each holds, in words, and one answer each."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Annotated

from pydantic import BeforeValidator, Field

from ..errors import ConfigurationError
from .settings import Probability, Seconds, Settings
from .wordings import ROUTE_CRITERIA, Wording, as_wording


class RouterSettings(Settings):
    """Which namespaces are searched once the gate is open."""

    threshold: Probability | None = None
    """P(the namespace is needed) from which on it is searched, 0..1; None: the decider's own, else 0.2."""
    question: Annotated[Wording, BeforeValidator(lambda value: as_wording(value, "router.question", subject=True))] = (
        ROUTE_CRITERIA
    )
    """What is asked about each namespace; `{subject}` in it becomes the description."""
    descriptions: Mapping[str, str] = Field(default_factory=dict)
    """What a namespace holds, one phrase, keyed by namespace as configured; overrides the default."""
    pinned: tuple[str, ...] = ()
    """Namespaces, as configured, that hold what must never be missed (allergies, standing style): fetched
    once per session whatever the gate says, and validated each turn."""
    pinned_ttl_s: Seconds = 900.0
    """How long fetched pinned records are reused, in seconds."""

    def check_names(self, known: Collection[str], why: str, known_are: str) -> None:
        """Check that the namespaces named here exist.

        Args:
            known: Those that there are.
            why: What is wrong with one that is not among them, such as "is not in retrieval_config".
            known_are: How to begin their list, such as "it has".

        Raises:
            ConfigurationError: One does not.
        """
        for setting in ("pinned", "descriptions"):
            for name in getattr(self, setting):
                if name not in known:
                    near = difflib.get_close_matches(name, known, n=1)
                    hint = (
                        f"did you mean {near[0]!r}?" if near else f"{known_are} {', '.join(map(repr, known)) or 'none'}"
                    )
                    raise ConfigurationError(f"RecallPolicy.router.{setting} names {name!r}, which {why}; {hint}")


_PURPOSES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"pref|taste|likes"), "the user's preferences, tastes, habits and how they want things done"),
    (re.compile(r"summar|conversation|dialog|chat"), "summaries of earlier conversations with the user"),
    (re.compile(r"episod|experience"), "past episodes: what the user tried or did, and how it went"),
    (re.compile(r"reflect|lesson|insight"), "lessons learned from past episodes"),
    (re.compile(r"semantic|facts?\b|knowledge"), "facts about the user: their life, health, people, places and work"),
    (re.compile(r"profile|about"), "the user's profile: who they are, their life and work"),
)

_GENERIC = re.compile(
    r"actors?|users?|customers?|members?|tenants?|sessions?|strateg(y|ies)|memor(y|ies)|records?|"
    r"namespaces?|long[-_ ]?term|ltm|default|v\d+|app|agents?|data|store"
)
_IDS_FOLLOW = re.compile(r"(actors?|users?|customers?|members?|tenants?|sessions?|strateg(y|ies)|agents?)")


@lru_cache(maxsize=1024)
def describe(namespace: str, strategy: str | None = None) -> str | None:
    """Say what a namespace holds, from its path, else from its strategy's name.

    Args:
        namespace: A namespace path or template, such as "/preferences/{actorId}/".
        strategy: The strategy's id or type, such as "user_preference-a1b2c3d4e5", if known.

    Returns:
        A phrase, or None when neither says anything: such a namespace is always searched.
    """
    words = _purpose_words(namespace)
    for source in (" ".join(words), (strategy or "").lower()):
        for pattern, purpose in _PURPOSES:
            if pattern.search(source):
                return purpose
    return f"the user's {' '.join(words)}" if words else None


def _purpose_words(namespace: str) -> list[str]:
    words: list[str] = []
    previous = ""
    for segment in namespace.lower().split("/"):
        is_id = bool(_IDS_FOLLOW.fullmatch(previous))
        previous = segment
        if not segment or "{" in segment or is_id or _GENERIC.fullmatch(segment) or re.search(r"\d", segment):
            continue
        words += [word for word in re.split(r"[-_:.\s]+", segment) if word]
    return words


def choose(namespaces: Sequence[str], probabilities: Mapping[str, float | None], threshold: float) -> tuple[str, ...]:
    """Return the namespaces to search, in the order given.

    Args:
        namespaces: All configured namespaces.
        probabilities: P(needed) per namespace; None where there was no decision.
        threshold: A probability, 0..1; equal is searched.

    Returns:
        Those at or above the threshold and those without a decision; all of them when no decided
        namespace reaches the threshold, because the gate has already said that memory is needed.
    """
    decided = {name: p for name in namespaces if (p := probabilities.get(name)) is not None}
    if not any(p >= threshold for p in decided.values()):
        return tuple(namespaces)
    return tuple(name for name in namespaces if name not in decided or decided[name] >= threshold)
