"""Gated long-term memory for Strands agents, on Amazon Bedrock AgentCore Memory and on any memory store.

`GatedMemorySessionManager` replaces `AgentCoreMemorySessionManager`, `GatedMemoryManager` the `MemoryManager` of
Strands: they ask a decision model whether a turn needs memory, which namespaces to search, and which records belong in
the prompt.
"""

from ._versions import check_versions

check_versions()

from .core.questions import (  # noqa: E402
    Answer,
    Choice,
    Decider,
    NoAnswer,
    Noul,
    Question,
    Score,
    State,
    Thresholds,
)
from .core.render import render_record  # noqa: E402
from .core.types import (  # noqa: E402
    DeciderCall,
    Dropped,
    GateDecision,
    Judgement,
    Lookup,
    Recall,
    Record,
    SearchResult,
    Turn,
    TurnTrace,
)
from .deciders.resolve import resolve_decider  # noqa: E402
from .deciders.warming import warm  # noqa: E402
from .errors import ConfigurationError, GatedMemoryError, RecallFailed  # noqa: E402
from .memory_manager import GatedMemoryManager  # noqa: E402
from .policy import RecallPolicy  # noqa: E402
from .recall import RecallPipeline  # noqa: E402 - after the check, which explains a failing import
from .reporting.stats import RecallStats  # noqa: E402
from .session_manager import GatedMemorySessionManager  # noqa: E402

__all__ = [
    "Answer",
    "Choice",
    "ConfigurationError",
    "Decider",
    "DeciderCall",
    "Dropped",
    "GateDecision",
    "GatedMemoryError",
    "GatedMemoryManager",
    "GatedMemorySessionManager",
    "Judgement",
    "Lookup",
    "NoAnswer",
    "Noul",
    "Question",
    "Recall",
    "RecallFailed",
    "RecallPipeline",
    "RecallPolicy",
    "RecallStats",
    "Record",
    "Score",
    "SearchResult",
    "State",
    "Thresholds",
    "Turn",
    "TurnTrace",
    "render_record",
    "resolve_decider",
    "warm",
]
