"""A Bedrock endpoint that takes what the strict models take: real boto3, real requests, a server on loopback."""

import sys
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import ClientError
from strands import Agent, tool
from strands.models import BedrockModel, CacheConfig
from turn_builders import STOCK, yes

sys.path.insert(0, str(Path(__file__).parents[1] / "deciders"))

from loopback import serving

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

ASK, BLOCK = "What do I drink now?", "<user_context>"
SONNET, NOVA = "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.amazon.nova-pro-v1:0"


def refused(messages):
    """Return why a strict model refuses the messages, None if it takes them."""
    roles = [message["role"] for message in messages]
    if roles != [("user", "assistant")[place % 2] for place in range(len(roles))]:
        return "A conversation must alternate between user and assistant roles."
    called = set()
    for place, message in enumerate(messages):
        kinds = {next(iter(block)) for block in message["content"]} - {"cachePoint"}
        results = {block["toolResult"]["toolUseId"] for block in message["content"] if "toolResult" in block}
        if "toolResult" in kinds and len(kinds) > 1:
            return f"messages.{place}: text and tool results in one turn are not supported by this model."
        if results != called:
            return f"messages.{place}: expected the results of {sorted(called)}."
        called = {block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block}
    return None


def strict(calls):
    """Reply as Bedrock does: so many tool calls in a row, then a text."""

    def reply(request):
        messages = request.document["messages"]
        if why := refused(messages):
            return 400, {"message": why}, {"x-amzn-errortype": "ValidationException"}
        done = sum("toolResult" in block for message in messages for block in message["content"])
        use = {"toolUse": {"toolUseId": f"t{done}", "name": "clock", "input": {}}}
        content, stop = ([use], "tool_use") if done < calls else ([{"text": "Tea."}], "end_turn")
        return 200, {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": stop,
            "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
            "metrics": {"latencyMs": 1},
        }

    return reply


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"


def bedrock(server, model_id=NOVA, **settings):
    session = boto3.Session(region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    return BedrockModel(boto_session=session, model_id=model_id, streaming=False, endpoint_url=server.url, **settings)


@pytest.mark.parametrize(
    ("calls", "settings"),
    [
        (1, {}),
        (3, {}),
        (2, {"model_id": SONNET, "cache_config": CacheConfig(strategy="auto")}),
        (1, {"guardrail_id": "g", "guardrail_version": "1", "guardrail_latest_message": True}),
    ],
    ids=["one tool call", "three", "cached", "guarded"],
)
@pytest.mark.parametrize("position", ["after", "before"])
def test_an_agent_with_a_tool_and_memory_gets_through(bench, calls, settings, position):
    bench.remember("Likes tea")
    manager = bench.manager(decider=yes, policy={"inject": {"position": position}})
    with serving(strict(calls)) as server:
        agent = bench.agent(manager, model=bedrock(server, **settings), tools=[clock])
        result = agent(ASK)

    assert result.stop_reason == "end_turn"
    requests = [str(request.document["messages"]) for request in server.requests]
    assert [request.count(BLOCK) for request in requests] == [1] * (calls + 1)
    assert "Likes tea" not in str(agent.messages)


def test_the_cache_point_stands_before_the_block_on_the_first_call_and_at_the_end_on_the_next(bench):
    bench.remember("Likes tea")
    with serving(strict(1)) as server:
        model = bedrock(server, SONNET, cache_config=CacheConfig(strategy="auto"))
        bench.agent(bench.manager(decider=yes), model=model, tools=[clock])(ASK)

    first, second = ([[next(iter(b)) for b in m["content"]] for m in r.document["messages"]] for r in server.requests)
    assert first == [["text", "cachePoint", "text"]]
    assert second == [["text", "text"], ["toolUse"], ["toolResult", "cachePoint"]]


def test_the_endpoint_refuses_what_this_package_once_sent(bench):
    """The server itself: a block beside a tool result ends the invocation."""
    with serving(strict(1)) as server:
        agent = Agent(model=bedrock(server), callback_handler=None)
        result = {"toolResult": {"toolUseId": "t0", "status": "success", "content": [{"text": "noon"}]}}
        agent.messages = [
            {"role": "user", "content": [{"text": ASK}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t0", "name": "clock", "input": {}}}]},
            {"role": "user", "content": [result, {"text": f"{BLOCK}Likes tea"}]},
        ]
        with pytest.raises(ClientError, match="text and tool results in one turn"):
            agent()


def test_stock_gets_through_too(bench):
    bench.remember("Likes tea")
    with serving(strict(1)) as server:
        agent = bench.agent(bench.manager(STOCK), model=bedrock(server), tools=[clock])

        assert agent(ASK).stop_reason == "end_turn"
