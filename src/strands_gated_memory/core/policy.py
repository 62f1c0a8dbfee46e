"""Every setting of a recall, grouped by stage, checked once when it is made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from .block import InjectSettings
from .breaker import BreakerSettings
from .gate import GateSettings
from .router import RouterSettings
from .select import SelectSettings
from .settings import Count, Probability, Seconds, Settings
from .turn import TurnSettings
from .wordings import RECORD_CRITERIA, Wording, as_wording


class RetrieveSettings(Settings):
    """How namespaces are searched."""

    timeout_s: Seconds = 2.0
    """How long one namespace's search may take, in seconds, within `deadline_s`."""
    send_strategy_id: bool = False
    """Whether a namespace's `strategy_id` is sent as a filter; the stock manager never sends it."""
    skip_own_summary: bool = True
    """Whether the current session's own summary is left out: the conversation holds it already."""


class RenderSettings(Settings):
    """What a record looks like to the decision model and in the prompt."""

    mode: Literal["prose", "raw"] = "prose"
    """"prose": every record shape as one line of prose. "raw": as stored."""


class ValidatorSettings(Settings):
    """Which records belong in the prompt."""

    threshold: Probability = 0.2
    """P(the record belongs) from which on it is kept, 0..1 (`select.mode` "threshold" and "hybrid")."""
    question: Annotated[
        Wording, BeforeValidator(lambda value: as_wording(value, "validator.question", subject=True))
    ] = RECORD_CRITERIA
    """What is asked about each record; `{subject}` in it becomes the rendered record."""
    drop_instructions: bool = False
    """Whether to ask of each record, in the same request, if it tries to instruct the assistant
    (`RECORD_INSTRUCTIONS`), and to drop it if so. A decider that abstains from such a question, as the embedded
    one does, leaves it to `core.instructions.instructs`. Without a valid answer the record is kept."""
    instructions_threshold: Probability = 0.5
    """P(the record tries to instruct the assistant) from which on it is dropped, 0..1."""


class RecallPolicy(Settings):
    """How a turn is recalled. Give any stage as a mapping: `RecallPolicy(gate={"threshold": 0.3})`.

    The defaults of the three thresholds and of `select.relative` are for deciders that ship none: a decider
    with `thresholds`, the embedded one included, uses its own wherever the policy sets none.

    Raises:
        pydantic.ValidationError: (a ValueError) naming the setting, its value and what it may be.
    """

    turn: TurnSettings = Field(default_factory=TurnSettings)
    gate: GateSettings = Field(default_factory=GateSettings)
    router: RouterSettings = Field(default_factory=RouterSettings)
    retrieve: RetrieveSettings = Field(default_factory=RetrieveSettings)
    render: RenderSettings = Field(default_factory=RenderSettings)
    validator: ValidatorSettings = Field(default_factory=ValidatorSettings)
    select: SelectSettings = Field(default_factory=SelectSettings)
    inject: InjectSettings = Field(default_factory=InjectSettings)
    deadline_s: Seconds = 3.0
    """How long a whole recall may take, in seconds. What is not there by then is done without."""
    breaker: Annotated[
        BreakerSettings, BeforeValidator(lambda value: {"failures": None} if value is None else value)
    ] = Field(default_factory=BreakerSettings)
    """When a decider, or a namespace's search, that keeps failing is left alone for a while; None: never."""
    on_failure: Literal["open", "raise"] = "open"
    """What the first failure of a turn does. "open": it is counted, and the turn goes on as if there were no
    decision model or no such namespace. "raise": it is counted, then `RecallFailed` ends the turn; for CI and
    evaluation, where a broken gate must not look like a working one. An abstention is no failure."""
    stats_log: Literal["block", "line", "json", "off"] = "block"
    """How the counters are logged at INFO: every `stats_every` turns, at the first failure, and on close, where
    managers that share them take turns."""
    stats_every: Count = Field(default=50, ge=1)
    """After how many turns the counters are logged."""

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], **settings: Any) -> RecallPolicy:
        """Return a policy with the questions, thresholds and selection that `python -m harness fit` wrote.

        Thresholds count as set here, so no doubt about them is reported for another model; the decider
        `"fitted:<path>"` reports it. It also brings the thresholds of a file with calibrators or heads: for
        any other decider these would be wrong, and this policy leaves them unset.

        Args:
            path: The file.
            **settings: Any others, as for `RecallPolicy`; a stage's settings are added to the file's and win.

        Raises:
            ConfigurationError: (a ValueError) the file is wrong; names file and field.
            pydantic.ValidationError: (a ValueError) a setting is wrong.
        """
        from .fitted import read_fitted

        values: dict[str, Any] = {}
        for name, fitted in read_fitted(path).settings().items():
            given = settings.pop(name, {})
            if isinstance(given, Settings):
                given = {field: getattr(given, field) for field in given.model_fields_set}
            values[name] = {**fitted, **given} if isinstance(given, Mapping) else given
        return cls(**values, **settings)

    @classmethod
    def stock(cls) -> RecallPolicy:
        """Return the stock manager's behaviour: raw records, in the history, no duplicates removed, no limits.

        With `decider=None` this is the stock manager, but for escaping, for the order of records, which
        is configuration order here and order of arrival there, and for its faults.
        """
        return cls(
            render=RenderSettings(mode="raw"),
            retrieve=RetrieveSettings(skip_own_summary=False),
            select=SelectSettings(dedupe=False, max_records=None, max_context_tokens=None),
            inject=InjectSettings(mode="history", position="before"),
        )
