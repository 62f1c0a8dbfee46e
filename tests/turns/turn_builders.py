"""Builders of the conversations under test: a user's memory, managers and agents over it, decision functions."""

import itertools
import threading
import time

from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig, RetrievalConfig
from bedrock_agentcore.memory.integrations.strands.session_manager import AgentCoreMemorySessionManager
from botocore.config import Config
from strands import Agent

from strands_gated_memory import GatedMemorySessionManager, RecallPolicy
from strands_gated_memory.testing import seed_records
from strands_gated_memory.testing.model import ScriptedModel, blocks_shown

FACTS = "/facts/{actorId}/"
PREFERENCES = "/preferences/{actorId}/"
STOCK, GATED = "stock", "gated"

PATIENT = {"deadline_s": 60.0, "timeout_s": 30.0}
"""How long a turn and its searches wait, in seconds: whatever else the machine does, they are back by then."""
AS_SHIPPED = None
"""Wait as long as a policy that says nothing of it does."""

_numbers = itertools.count(1)


def probabilities(default=0.9, **by_id):
    """Return a decision function: a probability per question id, `default` for the others."""

    def decide(state, questions):
        return {name: {"type": "noul", "noul": by_id.get(name, default)} for name in questions}

    return decide


yes = probabilities(0.9)
no = probabilities(0.01)


def broken(state, questions):
    """Fail always, as a model that cannot be reached."""
    raise RuntimeError("no model here")


def judging(**by_word):
    """Return a decision function: gate and namespaces 0.9, a record the value of the first word that it holds."""

    def decide(state, questions):
        return {name: {"type": "noul", "noul": _of(question["instructions"])} for name, question in questions.items()}

    def _of(instructions):
        return next((p for word, p in by_word.items() if word in instructions), 0.9)

    return decide


class Asked:
    """A decision function that keeps what it was asked: `states` and `questions`, a request each."""

    def __init__(self, decide=yes):
        self._decide = decide
        self._lock = threading.Lock()
        self.states, self.questions = [], []

    def __call__(self, state, questions):
        with self._lock:
            self.states.append(state)
            self.questions.append(questions)
        return self._decide(state, questions)

    @property
    def messages(self):
        return [state["message"] for state in self.states]


class Bench:
    """One user's long-term memory, and managers and agents over it."""

    def __init__(self, core, session):
        self.core = core
        self.session = session
        self.actor = f"user-{next(_numbers)}"
        self._watching = []
        self.client = session.client("bedrock-agentcore", config=Config(retries={"total_max_attempts": 1}))

    def remember(self, *texts, namespace=FACTS, **fields):
        records = [{"text": text, "namespace": namespace, **fields} for text in texts]
        seed_records(self.client, self.core.memory_id, records, actor_id=self.actor)
        return self

    def plant(self, namespace=FACTS, **summary):
        """Plant a raw summary; `text=` is short for its content."""
        if "text" in summary:
            summary["content"] = {"text": summary.pop("text")}
        self.core.add_raw_record(namespace.replace("{actorId}", self.actor), summary)
        return self

    def config(self, namespaces=(FACTS,), **settings):
        if not isinstance(namespaces, dict):
            namespaces = {name: RetrievalConfig(top_k=10) for name in namespaces}
        given = {"memory_id": self.core.memory_id, "actor_id": self.actor, "session_id": "session-1"}
        return AgentCoreMemoryConfig(**{**given, "retrieval_config": namespaces, **settings})

    def manager(
        self,
        kind=GATED,
        *,
        decider=None,
        policy=None,
        waits=PATIENT,
        stats=None,
        on_recall=None,
        tracing=None,
        **settings,
    ):
        """Return a manager; `settings` go to its configuration, `policy` may be a mapping.

        It waits so long that a busy machine fails no test, unless `policy` says how long, or `waits` is `AS_SHIPPED`.
        """
        config = self.config(**settings)
        if kind == STOCK:
            return AgentCoreMemorySessionManager(config, boto_session=self.session)
        policy = RecallPolicy(**policy) if isinstance(policy, dict) else policy or RecallPolicy()
        return GatedMemorySessionManager(
            config,
            boto_session=self.session,
            decider=decider,
            policy=_waiting(policy, waits),
            stats=stats,
            on_recall=on_recall,
            **(tracing or {}),
        )

    def agent(self, manager=None, *replies, **settings):
        """Return an agent whose model gives the replies, or "Fine." forever."""
        model = settings.pop("model", None) or ScriptedModel(replies or itertools.repeat("Fine."))
        manager = manager or self.manager()
        return Agent(model=model, session_manager=manager, callback_handler=None, **settings)

    def searches(self):
        """Return this user's searches so far, oldest first."""
        made = self.core.calls.of("RetrieveMemoryRecords")
        return [call for call in made if self.actor in (call.namespace_path or call.namespace or "")]

    def at_each(self, operation, act):
        """Let clients made from now on call `act(path)` before each request of an operation, in its thread."""

        def begins(params, **more):
            act(params.get("namespacePath") or params.get("namespace"))

        event = f"provide-client-params.bedrock-agentcore.{operation}"
        self.session.events.register(event, begins)
        self._watching.append((event, begins))
        return self

    def end(self):
        """Let clients made from now on be watched no more."""
        for event, begins in self._watching:
            self.session.events.unregister(event, begins)

    def queries(self):
        return [call.query for call in self.searches()]

    def stored(self):
        """Return everything that was written to the session, as text."""
        return str([call.parameters for call in self.core.calls.of("CreateEvent")])


def _waiting(policy, waits):
    """Return a policy that waits as long as `waits` says where it does not say itself how long."""
    if waits is AS_SHIPPED or policy.deadline_s is not None or policy.retrieve.model_fields_set & {"timeout_s"}:
        return policy
    retrieve = policy.retrieve.model_copy(update={"timeout_s": waits["timeout_s"]})
    return policy.model_copy(update={"deadline_s": waits["deadline_s"], "retrieve": retrieve})


class Hanging:
    """A call that hangs until the `with` ends, or for so many seconds at most.

    A turn that is over while `ended` is not set has not waited for it, however long the turn took.
    """

    def __init__(self, at_most_s=None):
        self._at_most_s = at_most_s
        self._released = threading.Event()
        self.begun, self.ended = threading.Event(), threading.Event()

    def __call__(self):
        self.begun.set()
        self._released.wait(self._at_most_s)
        self.ended.set()

    def release(self):
        """Let every call go on."""
        self._released.set()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.release()


def until(condition, at_most_s=60.0):
    """Wait for what other threads bring about; at most so long, on a machine that does other things too."""
    give_up = time.monotonic() + at_most_s
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.005)


def blocks_per_call(agent):
    """Return how many recall blocks each model call was shown."""
    return [len(blocks_shown(messages)) for messages in agent.model.calls]


def blocks_kept(agent):
    """Return the recall blocks in the agent's own messages."""
    return blocks_shown(agent.messages)


def last_block(agent):
    """Return the lines of the block that the last model call was shown; [] if there was none."""
    blocks = blocks_shown(agent.model.calls[-1])
    assert len(blocks) <= 1
    return blocks[0].splitlines()[1:-1] if blocks else []


def spoken(messages):
    """Return the texts of messages, with their roles."""
    return [(m["role"], block["text"]) for m in messages for block in m["content"] if "text" in block]
