"""The post's findings, what it published, and what our measurements say to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..measuring.tables import Result


@dataclass(frozen=True)
class PostFinding:
    """One finding of the post."""

    claim: str
    published: str
    """Its figures; of other sentences, another store and other models than ours."""
    command: str
    """What measures it."""


POST: Mapping[str, PostFinding] = {
    "criteria_beats_plain_gate": PostFinding(
        "For the gate, the wording with criteria beats the plain one.",
        "20 utterances, strands-decider 2B: best accuracy 100 % (margin +0.198) against 65 % (-0.281)",
        "gate",
    ),
    "criteria_beats_plain_validator": PostFinding(
        "For the validator, the wording with criteria beats the plain one.",
        "four queries: best accuracy 100 %, mean AUC 1.000 against 80 %, 0.835",
        "validator",
    ),
    "topical_ranks_but_separates_badly": PostFinding(
        "Topical overlap ranks well and separates badly.",
        "four queries: mean AUC 1.000, P@k 100 %, margin -0.401, best accuracy 77 %",
        "validator",
    ),
    "counterfactual_at_chance": PostFinding(
        "The counterfactual wording of the validator ranks at chance.",
        "four queries: mean AUC 0.490, P@k 29 %",
        "validator",
    ),
    "json_above_prose_until_rendered": PostFinding(
        "JSON records score above prose ones until both are rendered.",
        "no figure for scores; on the drink query 10 records kept before rendering, 7 after",
        "renderer",
    ),
}
"""From the post "Should the agent even look that up?", by key."""

SHOWN_BY = "reproduced"


def lines(results: Sequence[Result], missing: str) -> list[str]:
    """Return the findings as Markdown, each with every decider's verdict.

    Args:
        results: All measurements.
        missing: The decider that reads any wording and is not among them, for the command to run.
    """
    shown: list[str] = []
    for key, post in POST.items():
        verdicts = [(one, one.findings[key]) for one in results if key in one.findings and one.decider != "stock"]
        told = [(one, finding) for one, finding in verdicts if finding.verdict != "cannot be told"]
        silent: dict[str, list[str]] = {}
        for one, finding in verdicts:
            if finding.verdict == "cannot be told":
                silent.setdefault(finding.text, []).append(f"{one.decider} on {one.data}")
        yes = sum(finding.verdict == SHOWN_BY for _, finding in told)
        shown.append(f"- **{post.claim}** {_summary(yes, len(told))}")
        shown.append(f"  - the post ({post.published})")
        shown += [f"  - {one.decider} on {one.data}: {finding.verdict}: {finding.text}" for one, finding in told]
        shown += [f"  - {', '.join(who)}: cannot be told: {why}" for why, who in silent.items()]
        if not told:
            shown.append(f"  - to show it: `python -m harness {post.command} --decider {missing}`")
    return shown


def _summary(yes: int, of: int) -> str:
    if not of:
        return "Cannot be told from the deciders that were run here."
    if yes == of:
        return f"Reproduced ({yes} of {of} measurements)."
    return f"Reproduced in {yes} of {of} measurements." if yes else f"Not reproduced ({of} measurements)."
