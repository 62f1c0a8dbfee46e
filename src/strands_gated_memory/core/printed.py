"""A recall for people at a terminal. It holds text of users, so it is printed by them and never logged."""

from __future__ import annotations

import shutil
import unicodedata

from .columns import within
from .types import GateDecision, Judgement, Recall, TurnTrace

_LEAST_COLUMNS = 40
_USUAL = (100, 24)
"""Columns and lines where the output is no terminal."""
_MOST_UNJUDGED = 20
"""Records that were left out before judging and get a line each."""
_PER_COLUMN = 4
"""Characters of a line, per column."""


def printed(recall: Recall) -> str:
    """Return the gate with its namespaces, a line per record, and what failed, as wide as the terminal."""
    trace = recall.trace
    place = {id(record): at for at, record in enumerate(recall.records)}
    judged = sorted(trace.judgements, key=lambda judgement: place.get(id(judgement.record), len(place)))
    unjudged = recall.dropped[: len(recall.dropped) - sum(not judgement.keep for judgement in judged)]
    cuts = {name: trace.thresholds.get(name) for name in ("validator", "relative")}
    cut = ", ".join(f"{name} {value:.3g}" for name, value in cuts.items() if value is not None)
    lines = [
        *_gate_lines(trace.gate, trace),
        f"records: {len(recall.records)} injected, {len(recall.dropped)} left out{f' (cuts: {cut})' if cut else ''}",
        *(_record_line(one.keep, one.probability, _why(one), one.rendered or one.record.text) for one in judged),
        *(_record_line(False, None, one.reason, one.record.text) for one in unjudged[:_MOST_UNJUDGED]),
        *([f"  - and {len(unjudged) - _MOST_UNJUDGED} more"] if len(unjudged) > _MOST_UNJUDGED else []),
        f"block: {trace.block_tokens} tokens",
        *([f"! turn: {trace.failure}: it had no memory"] if trace.failure is not None else []),
        *(f"! {failure.stage}: {failure.kind}: {failure.cause}" for failure in trace.failures),
    ]
    width = max(_LEAST_COLUMNS, shutil.get_terminal_size(_USUAL).columns)
    # Accents take no column, so a line is bounded by its characters too.
    return "\n".join(within(harmless(line[: _PER_COLUMN * width]), width) for line in lines)


def _gate_lines(gate: GateDecision | None, trace: TurnTrace) -> list[str]:
    if gate is None:
        return ["gate: none, the turn ended before it"]
    lookups = {lookup.namespace: lookup for lookup in trace.lookups}
    lines = [f"gate: {gate.outcome}{_against(gate.probability, trace.thresholds.get('gate'))}"]
    for name, probability in gate.namespaces.items():
        lookup = lookups.get(name)
        if lookup is None:
            state = "not searched" if gate.open else "not searched (gate closed)"
        elif lookup.error is not None:
            state = f"failed ({lookup.error})"
        else:
            how = "cached" if lookup.cached else "pinned" if lookup.pinned else "searched"
            state = f"{how}, {lookup.records} record{'' if lookup.records == 1 else 's'}"
        lines.append(f"  {name}  {state}{_against(probability, trace.thresholds.get('router'))}")
    return lines


def _against(probability: float | None, cut: float | None) -> str:
    if probability is None:
        return ""
    return f", P {probability:.3f}" + ("" if cut is None else f" (cut {cut:.3g})")


def _why(judgement: Judgement) -> str:
    return f"{judgement.reason}, shortened" if judgement.shortened else judgement.reason


def _record_line(keep: bool, probability: float | None, reason: str, text: object) -> str:
    shown = "" if probability is None else f"P {probability:.3f}"
    return f"  {'+' if keep else '-'} {shown:<7}  {reason:<15}  {text}"


def harmless(text: str) -> str:
    """Return a text on one line without a character that commands a terminal: escapes stand in their places."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character.isspace():
        return " "
    category = unicodedata.category(character)
    if category in ("Cc", "Cs") or (category == "Cf" and character not in _JOINERS):
        return character.encode("unicode_escape").decode("ascii")
    return character


_JOINERS = "\u200c\u200d"
"""Letters of Persian and Indic scripts, and emoji, need them."""
