"""What the recall block costs where the prompt is cached: `python -m harness.benchmarks.prompt_cache [--turns N]`.

Real agents talk for some turns, the gate open on each, over an emulated AgentCore Memory: with the stock manager, with
the block before the user's text, and with the block after it. Each model call is formatted by Strands'
`BedrockModel` with `CacheConfig("auto")`, so the cache points are Strands' own; nothing is sent. A model of the
provider's cache then prices the request: what an earlier call has written up to one of its cache points is read, what
follows up to this call's last cache point is written, the rest is paid in full.

One unit is the price of 1,000 uncached input tokens. Sizes are given below in characters, four to a token; they are
chosen so that stock costs about 85 units over 40 turns without tools, as in an earlier model of this.

Exits non-zero when the new place costs more than 50 units over 40 turns without tools, or not less than stock with
tools.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import sys
from collections.abc import AsyncIterable, Iterator
from dataclasses import dataclass
from typing import Any

import boto3
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig, RetrievalConfig
from bedrock_agentcore.memory.integrations.strands.session_manager import AgentCoreMemorySessionManager
from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.models import BedrockModel, CacheConfig

from strands_gated_memory import GatedMemorySessionManager, RecallPolicy
from strands_gated_memory.testing import HashingEncoder, local_agentcore, seed_records
from strands_gated_memory.testing.model import Reply, ScriptedModel, ToolCall

TURNS = 40
TOOL_EVERY = 4
"""Where there are tools, every so many turns hold one tool call."""
USER_CHARACTERS = 240
ASSISTANT_CHARACTERS = 800
TOOL_RESULT_CHARACTERS = 1_200
RECORDS, RECORD_CHARACTERS = 10, 158
READ, WRITTEN = 0.1, 1.25
"""Prices of a cached token beside an uncached one, as Anthropic and Bedrock publish them for Claude."""
LOOKBACK = 20
"""How many blocks before a cache point are searched for what an earlier call has written."""
GOAL = 50.0
"""Units that the new place may cost over 40 turns without tools."""
NAMESPACE = "/facts/{actorId}/"
ARMS = {"stock": None, "block before the text": "before", "block after the text": "after"}
_SHOW = "show_figures"


@dataclass(frozen=True)
class Costs:
    """What one conversation cost, per arm, in units."""

    without_tools: dict[str, float]
    with_tools: dict[str, float]


class PromptCache:
    """A provider's prompt cache: prefixes of requests, kept from one call to the next.

    Attributes:
        units: What all requests so far have cost, in thousands of uncached input tokens.
    """

    def __init__(self) -> None:
        self.units = 0.0
        self._written: set[tuple[str, ...]] = set()

    def charge(self, request: dict[str, Any]) -> None:
        """Price one Converse request and remember what it writes."""
        prefix: list[str] = []
        points: list[int] = []
        for block in _blocks(request):
            if "cachePoint" in block:
                points.append(len(prefix))
            else:
                prefix.append(json.dumps(block, sort_keys=True, default=str))
        starts = {start for point in points for start in range(point, max(point - LOOKBACK, 0), -1)}
        read = max((start for start in starts if tuple(prefix[:start]) in self._written), default=0)
        written = max(points, default=0)
        tokens = [_characters(block) / 4 for block in prefix]
        cost = READ * sum(tokens[:read]) + WRITTEN * sum(tokens[read:written]) + sum(tokens[max(read, written) :])
        self.units += cost / 1_000
        self._written.update(tuple(prefix[:point]) for point in points)


class FormattingModel(BedrockModel):
    """Formats each request as for Bedrock, charges it, and answers from a script.

    Args:
        replies: One per model call.
    """

    def __init__(self, replies: Iterator[Reply]) -> None:
        super().__init__(
            boto_session=boto3.Session(region_name="us-east-1"),
            model_id="us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            cache_config=CacheConfig(strategy="auto"),
        )
        self.cache = PromptCache()
        self._script = ScriptedModel(replies)

    async def stream(  # type: ignore[override]
        self,
        messages: Any,
        tool_specs: Any = None,
        system_prompt: Any = None,  # noqa: ARG002 - the signature is the Model interface of Strands
        **kwargs: Any,
    ) -> AsyncIterable[Any]:
        """Format, charge and answer."""
        request = self.format_request(
            messages,
            tool_specs,
            kwargs.get("system_prompt_content"),
            kwargs.get("tool_choice"),
            kwargs.get("dynamic_trailing_blocks", 0),
        )
        self.cache.charge(request)
        async for event in self._script.stream(messages):
            yield event


@tool(name=_SHOW)
def show_figures(number: int) -> str:
    """Show the figures of a day."""
    return _text(f"figures of day {number}", TOOL_RESULT_CHARACTERS)


def measure(turns: int = TURNS) -> Costs:
    """Return what each arm costs over a conversation, without tools and with them."""
    logging.getLogger("bedrock_agentcore").setLevel(logging.WARNING)
    sessions = itertools.count()
    with local_agentcore(encoder=HashingEncoder()) as memory:
        session = boto3.Session(region_name="us-east-1")
        client = session.client("bedrock-agentcore")
        records = [
            {"text": _text(f"record {number} about day {number}", RECORD_CHARACTERS), "namespace": NAMESPACE}
            for number in range(RECORDS)
        ]
        seed_records(client, memory.memory_id, records, actor_id="user")

        def cost(position: str | None, tools: bool) -> float:
            config = AgentCoreMemoryConfig(
                memory_id=memory.memory_id,
                actor_id="user",
                session_id=f"session-{next(sessions)}",
                retrieval_config={NAMESPACE: RetrievalConfig(top_k=RECORDS)},
            )
            manager: Any
            if position is None:
                manager = AgentCoreMemorySessionManager(config, boto_session=session)
            else:
                policy = RecallPolicy(inject={"position": position}, stats_log="off")
                manager = GatedMemorySessionManager(config, boto_session=session, decider=None, policy=policy)
            model = FormattingModel(_replies(turns, tools))
            agent = Agent(
                model=model,
                session_manager=manager,
                tools=[show_figures] if tools else [],
                conversation_manager=NullConversationManager(),  # a window that slides ends every cached prefix
                callback_handler=None,
            )
            for number in range(turns):
                agent(_text(f"question {number} about day {number % RECORDS}", USER_CHARACTERS))
            manager.close()
            return model.cache.units

        return Costs(*({arm: cost(position, tools) for arm, position in ARMS.items()} for tools in (False, True)))


def table(costs: Costs, turns: int = TURNS) -> str:
    """Return the costs as a Markdown table, in units rounded to whole ones."""
    rows = [
        f"| units over {turns} turns | {' | '.join(ARMS)} |",
        "|---|" + "---|" * len(ARMS),
    ]
    for name, units in (
        ("without tools", costs.without_tools),
        (f"a tool call in every {TOOL_EVERY}th turn", costs.with_tools),
    ):
        rows.append(f"| {name} | {' | '.join(f'{units[arm]:.0f}' for arm in ARMS)} |")
    return "\n".join(rows)


def main() -> int:
    """Print the table; fail when a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=TURNS, help="turns of the conversation")
    turns = parser.parse_args().turns
    costs = measure(turns)
    print(table(costs, turns))
    stock, _, after = ARMS
    missed = costs.with_tools[after] >= costs.with_tools[stock]
    if turns == TURNS:
        missed = missed or costs.without_tools[after] > GOAL
        print(f"goal without tools: at most {GOAL:.0f} units; with tools: less than stock")
    return int(missed)


def _replies(turns: int, tools: bool) -> Iterator[Reply]:
    for number in range(turns):
        if tools and number % TOOL_EVERY == TOOL_EVERY - 1:
            yield ToolCall(_SHOW, {"number": number}, f"tool-{number}")
        yield _text(f"answer {number}", ASSISTANT_CHARACTERS)


def _text(topic: str, characters: int) -> str:
    """Return a text on a topic of exactly so many characters."""
    return (f"{topic}; " * characters)[:characters]


def _blocks(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a request's blocks in the order in which the provider caches: tools, system, messages."""
    yield from request.get("toolConfig", {}).get("tools", [])
    yield from request["system"]
    for message in request["messages"]:
        for block in message["content"]:
            yield block if "cachePoint" in block else {"role": message["role"], **block}


def _characters(block: str) -> int:
    """Return how long the texts of a block are; names and brackets of the format are not counted."""
    found: list[int] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                if name != "role":
                    walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)
        else:
            found.append(len(str(value)))

    walk(json.loads(block))
    return sum(found)


if __name__ == "__main__":
    sys.exit(main())
