"""What each provider of Strands is sent on the model call after a tool: its real formatter, the real agent's messages.

The SDKs that are not installed are stubs, at their import alone; the formatters are Strands' own.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import json
import pkgutil
import sys
import types

import boto3
import pytest
import strands.models
from strands import tool
from turn_builders import STOCK, yes

from strands_gated_memory.testing.model import ScriptedModel, ToolCall

pytestmark = pytest.mark.filterwarnings("ignore:LlamaAPIModel is deprecated:DeprecationWarning")

ASK, BLOCK = "What do I drink now?", "<user_context>"
SDKS = {
    "anthropic": ("anthropic",),
    "gemini": ("google.genai",),
    "litellm": ("litellm", "openai"),
    "llamaapi": ("llama_api_client",),
    "mistral": ("mistralai",),
    "ollama": ("ollama",),
    "openai": ("openai",),
    "openai_responses": ("openai",),
    "sagemaker": ("mypy_boto3_sagemaker_runtime", "openai"),
    "writer": ("writerai",),
}
"""What a provider's module imports and what may be missing here."""


class Anything:
    """An object of a stubbed SDK: keeps what it was made with."""

    def __init__(self, *args, **fields):
        vars(self).update(fields)

    def to_json_dict(self):
        return {name: value for name, value in vars(self).items() if value is not None}


class Stub(types.ModuleType):
    """A module of a stubbed SDK: every name is a class, and so are the names of those that look like modules."""

    __version__ = "2.0.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        kind = Stub(f"{self.__name__}.{name}") if name.islower() else type(name, (Anything, Exception), {})
        setattr(self, name, kind)
        return kind


class StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the stubbed SDKs and all their submodules."""

    def __init__(self, roots):
        self.roots = roots

    def find_spec(self, name, path=None, target=None):
        if any(name == root or name.startswith(f"{root}.") for root in self.roots):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Stub(spec.name)

    def exec_module(self, module):
        """Leave it empty."""


def missing(root):
    try:
        return importlib.util.find_spec(root) is None
    except ModuleNotFoundError:  # its parent is missing
        return True


@pytest.fixture
def provider(monkeypatch):
    """Return a function that imports a provider's module, its missing SDKs stubbed until the test is over."""
    before = dict(sys.modules)
    finders = []

    def load(name):
        stubbed = [root for root in SDKS.get(name, ()) if missing(root)]
        if "google.genai" in stubbed and missing("google"):
            stubbed.append("google")
        finder = StubFinder(stubbed)
        finders.append(finder)
        sys.meta_path.append(finder)
        real = importlib.metadata.version
        monkeypatch.setattr(
            importlib.metadata, "version", lambda package: "2.0.0" if package in stubbed else real(package)
        )
        return importlib.import_module(f"strands.models.{name}")

    yield load
    for finder in finders:
        sys.meta_path.remove(finder)
    for name in [name for name in sys.modules if name not in before]:
        parent, _, child = name.rpartition(".")
        if parent == "strands.models":
            vars(strands.models).pop(child, None)
        if parent == "strands.models" or isinstance(sys.modules[name], Stub):
            del sys.modules[name]


def plain(value):
    """Return formatted messages as plain data."""
    if isinstance(value, Anything):
        return plain(value.to_json_dict())
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def bedrock(module, messages):
    model = module.BedrockModel(boto_session=boto3.Session(region_name="us-east-1"), model_id="us.amazon.nova-pro-v1:0")
    return model.format_request(messages)["messages"]


def sagemaker(module, messages):
    model = module.SageMakerAIModel(
        boto_session=boto3.Session(region_name="us-east-1"),
        endpoint_config={"endpoint_name": "mine"},
        payload_config={"max_tokens": 10},
    )
    return json.loads(model.format_request(messages)["Body"])["messages"]


FORMATTERS = {
    "anthropic": lambda module, messages: module.AnthropicModel(model_id="m", max_tokens=10).format_request(messages)[
        "messages"
    ],
    "bedrock": bedrock,
    "gemini": lambda module, messages: plain(module.GeminiModel(model_id="m")._format_request_content(messages)),
    "litellm": lambda module, messages: module.LiteLLMModel(model_id="m").format_request(messages)["messages"],
    "llamaapi": lambda module, messages: module.LlamaAPIModel(model_id="m").format_request(messages)["messages"],
    "llamacpp": lambda module, messages: module.LlamaCppModel()._format_request(messages)["messages"],
    "mistral": lambda module, messages: module.MistralModel(model_id="m").format_request(messages)["messages"],
    "ollama": lambda module, messages: module.OllamaModel("http://localhost", model_id="m").format_request(messages)[
        "messages"
    ],
    "openai": lambda module, messages: module.OpenAIModel(model_id="m").format_request(messages)["messages"],
    "openai_responses": lambda module, messages: module.OpenAIResponsesModel(model_id="m")._format_request(messages)[
        "input"
    ],
    "sagemaker": sagemaker,
    "writer": lambda module, messages: module.WriterModel(model_id="m").format_request(messages)["messages"],
}
"""Provider -> the messages of a request as it formats them."""
ONE_TEXT = {"sagemaker", "writer"}
"""Those that take one text of a message; they have a test of their own."""


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"


def second_call(bench, kind=None, prompt=ASK, **inject):
    """Return the messages of the model call after a tool call."""
    manager = bench.manager(*([kind] if kind else []), decider=yes, policy={"inject": inject})
    agent = bench.agent(manager, ToolCall("clock", {}, "t1"), "Tea.", tools=[clock])
    agent(prompt)
    return agent.model.calls[1]


def kinds_of(message):
    """Return what a formatted message holds: texts, tool calls and tool results, in order."""
    found = []
    if message.get("type") in ("function_call", "function_call_output"):
        return [{"function_call": "call", "function_call_output": "result"}[message["type"]]]
    if message.get("role") == "tool":
        return ["result"]
    content = message.get("content", message.get("parts", []))
    for block in (
        [{"text": content}] if isinstance(content, str) else [content] if isinstance(content, dict) else content
    ):
        if {"toolResult", "function_response"} & set(block) or block.get("type") == "tool_result":
            found.append("result")
        elif {"toolUse", "function_call"} & set(block) or block.get("type") == "tool_use":
            found.append("call")
        elif block.get("text") != "":
            found.append("text")
    return found + ["call"] * len(message.get("tool_calls", []))


def check_order(messages):
    """Check what providers ask of the order: results alone, directly after their calls, the assistant after them."""
    spoken = [(message.get("role"), kinds) for message in messages if (kinds := kinds_of(message))]
    for (_, before), (role, now) in zip([("", []), *spoken], [*spoken, ("", [])], strict=True):
        assert not ("result" in before and "text" in now and role == "user")
        assert "result" not in now or set(now) == {"result"}
        assert ("call" in before) <= bool({"result", "call"} & set(now))
        assert ("result" in now) <= bool({"result", "call"} & set(before))


def test_every_provider_that_strands_ships_is_formatted_here():
    """A new provider fails this test until it stands in FORMATTERS."""
    shipped = {info.name for info in pkgutil.iter_modules(strands.models.__path__) if not info.name.startswith("_")}

    assert shipped - {"model", "routing"} == set(FORMATTERS)


@pytest.mark.parametrize("position", ["after", "before"])
@pytest.mark.parametrize("name", sorted(set(FORMATTERS) - ONE_TEXT))
def test_a_tool_result_shares_no_message_with_the_block(bench, provider, name, position):
    """The order is one that the provider takes, and the model reads the ask and the block, in this order."""
    bench.remember("Likes tea")

    messages = FORMATTERS[name](provider(name), second_call(bench, position=position))

    check_order(messages)
    sent = json.dumps(messages)
    assert sent.count(BLOCK) == sent.count(ASK) == 1
    assert (sent.index(ASK) < sent.index(BLOCK)) == (position == "after")


@pytest.mark.parametrize("prompt", [[{"text": "Good morning."}, {"text": ASK}], ASK * 40], ids=["two texts", "long"])
@pytest.mark.parametrize("name", sorted(set(FORMATTERS) - ONE_TEXT))
def test_longer_asks_are_in_order_too(bench, provider, name, prompt):
    bench.remember("Likes tea")

    messages = FORMATTERS[name](provider(name), second_call(bench, prompt=prompt))

    check_order(messages)
    assert json.dumps(messages).count(BLOCK) == 1


@pytest.mark.parametrize("name", FORMATTERS)
def test_a_mixed_message_of_the_user_keeps_its_shape(bench, provider, name):
    """A question beside a tool result: what is sent has the parts that it has without memory, with the block in one."""
    bench.remember("Likes tea")
    prompt = [{"toolResult": {"toolUseId": "t0", "status": "success", "content": [{"text": "noon"}]}}, {"text": ASK}]
    module = provider(name)
    history = [
        {"role": "user", "content": [{"text": "What time?"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t0", "name": "clock", "input": {}}}]},
    ]

    sent = []
    for settings in ({"session_id": "with"}, {"session_id": "without", "retrieval_config": None}):
        agent = bench.agent(bench.manager(decider=yes, **settings), model=ScriptedModel(["Tea."]), messages=[*history])
        agent(prompt)
        sent.append(FORMATTERS[name](module, agent.model.calls[0]))

    with_memory, without = sent
    assert [(m.get("role"), kinds_of(m)) for m in with_memory] == [(m.get("role"), kinds_of(m)) for m in without]
    assert (json.dumps(with_memory).count(BLOCK), json.dumps(without).count(BLOCK)) == (1, 0)


def test_the_stock_block_is_what_the_order_is_checked_against(bench, provider):
    """The check itself: it refuses a text beside a tool result, as this package once sent it."""
    bench.remember("Likes tea")
    messages = second_call(bench, STOCK)
    messages[-1]["content"].append({"text": "memory"})

    with pytest.raises(AssertionError):
        check_order(bedrock(provider("bedrock"), messages))
    with pytest.raises(AssertionError):
        check_order([{"role": "assistant", "tool_calls": [{}]}, {"role": "user", "content": "x"}, {"role": "tool"}])


@pytest.mark.parametrize("mode", ["turn", "history"])
@pytest.mark.parametrize(("name", "kind"), [("sagemaker", "SageMakerAIModel"), ("writer", "WriterModel")])
def test_a_provider_that_takes_one_text_is_sent_ask_and_block_in_one(bench, provider, name, kind, mode):
    """Strands' formatter for SageMaker drops every text of a message but the first, Writer's refuses a second."""
    module = provider(name)
    bench.remember("Likes tea")
    model = type("Scripted", (ScriptedModel, getattr(module, kind)), {})([ToolCall("clock", {}, "t1"), "Tea."])
    agent = bench.agent(bench.manager(decider=yes, policy={"inject": {"mode": mode}}), model=model, tools=[clock])

    agent(ASK)

    for messages in model.calls:
        formatted = FORMATTERS[name](module, messages)
        check_order(formatted)
        sent = json.dumps(formatted)
        assert sent.count(BLOCK) == sent.count(ASK) == 1


@pytest.mark.parametrize(
    "prompt",
    [ASK, [{"text": "Good morning."}, {"text": ASK}], [{"guardContent": {"text": {"text": ASK}}}, {"text": "Now."}]],
    ids=["text", "texts", "guarded"],
)
def test_the_guardrail_sees_the_users_text_after_a_tool_call(bench, provider, prompt):
    """`guardrail_latest_message` guards the latest message with text: the user's, not the tool result's."""
    bench.remember("Likes tea")
    module = provider("bedrock")
    model = module.BedrockModel(
        boto_session=boto3.Session(region_name="us-east-1"),
        model_id="us.amazon.nova-pro-v1:0",
        guardrail_id="g",
        guardrail_version="1",
        guardrail_latest_message=True,
    )

    messages = model.format_request(second_call(bench, prompt=prompt))["messages"]

    guarded = [[str(b["guardContent"]) for b in m["content"] if "guardContent" in b] for m in messages]
    assert [bool(texts) for texts in guarded] == [True, False, False]
    assert any(ASK in text for text in guarded[0])
