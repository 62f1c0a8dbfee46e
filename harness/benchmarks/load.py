"""Many sessions at once, with faults; and what a turn costs beside the stock manager.

`python -m harness.benchmarks.load [--sessions N] [--turns N] [--faults SHARE]`

1. Own time: what recall adds to a turn, the stock manager's and ours turn about in one thread, over fakes that
   answer at once: the model, the memory with the same records, and a decision model that opens the gate and keeps
   everything. It is the time of a turn less that of the same turn of the stock manager without `retrieval_config`,
   so it holds all that either way of recalling costs: searching and deciding in the hook, placing the block, and
   carrying along what stays in the conversation. The seconds inside the hook are printed beside it. The row "no
   decider" shows what of ours is searching, rendering, duplicates and block, and what is asking. The managers take
   their turns in random order, first on one CPU, then on all: on an idle machine the second table adds how long a
   sleeping CPU takes to wake, at each hand-over to a worker thread.
2. The same of the memory manager beside Strands' own, over stores that answer at once, from a list.
3. Load: N sessions of N turns in one process, a user each, with faults in the decision model and in the searches
   drawn from a seed. Every turn's block is compared, record by record, with what that turn's faults leave.

Exits non-zero when a record is lost or another user's is shown, on any exception, when threads or memory grow, or
when the median of the session manager's own time, on one CPU where the platform can say so, is above the stock
manager's. The memory manager's is printed beside its goal.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import logging
import math
import os
import random
import re
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig, RetrievalConfig
from bedrock_agentcore.memory.integrations.strands.session_manager import AgentCoreMemorySessionManager
from botocore.exceptions import ClientError, EndpointConnectionError
from strands import Agent
from strands.memory import MemoryEntry, MemoryManager, MemoryStore, SearchOptions
from strands.models import Model

from strands_gated_memory import GatedMemoryManager, GatedMemorySessionManager, RecallPolicy, RecallStats
from strands_gated_memory.testing import blocks_shown

MEMORY_ID = "memory-0123456789"
NAMESPACES = ("/facts/{actorId}/", "/preferences/{actorId}/")
RECORDS = 10
"""Records per namespace; all of them are found, kept and injected."""
DRIVERS = 16
"""Sessions that talk at the same time."""
FLAT = 0.05
"""How far the mean resident memory of the last tenth of the turns may be above the first's."""
POOLED = 32 + 64
"""Threads of the package's pools for decisions and searches."""
SLACK_THREADS = 8

Fault = str
FAULTS: Mapping[str, tuple[Fault, ...]] = {
    "gate": ("raises", "not a mapping", "no answer", "not a number"),
    "search": ("throttled", "denied", "unreachable", "another user's record", "malformed record"),
    "judge": ("raises", "not a mapping", "no answer", "not a number"),
}


def text_of(actor: str, namespace: str, number: int) -> str:
    """Return the text of one record: who, where and which."""
    kind = namespace.split("/")[1]
    return f"{actor} {kind} {number}: the user would rather take the early train than the late one, window side"


class Faults:
    """Which turn meets which fault: a function of the seed alone, so that both sides of a fake agree."""

    def __init__(self, share: float, seed: int = 7) -> None:
        self._share = share
        self._seed = seed

    def of(self, stage: str, actor: str, turn: int, namespace: str = "") -> Fault | None:
        """Return the fault of one stage on one turn, None for most."""
        drawn = hashlib.blake2b(f"{self._seed} {stage} {actor} {turn} {namespace}".encode(), digest_size=8).digest()
        number = int.from_bytes(drawn, "big")
        if number % 10_000 >= 10_000 * self._share:
            return None
        kinds = FAULTS[stage]
        return kinds[number // 10_000 % len(kinds)]


class FakeService:
    """A data plane and a boto3 session in one: answers at once, from a table per user."""

    region_name = "us-east-1"

    def __init__(self, faults: Faults) -> None:
        self.meta = self  # a client's, which holds its region
        self._faults = faults
        self._pages: dict[str, dict[str, Any]] = {}

    def client(self, *_: Any, **__: Any) -> FakeService:
        """Return itself for every service."""
        return self

    def list_events(self, **_: Any) -> dict[str, Any]:
        """Return no history."""
        return {"events": []}

    def create_event(self, **_: Any) -> dict[str, Any]:
        """Keep nothing."""
        return {"event": {"eventId": "0#0"}}

    def retrieve_memory_records(self, **request: Any) -> dict[str, Any]:
        """Return the records of a namespace, or fail as the turn's draw says."""
        path = request["namespacePath"]
        page = self._page(path)
        _, kind, actor, _ = path.split("/")
        turn = turn_in(request["searchCriteria"]["searchQuery"])
        match self._faults.of("search", actor, turn, kind):
            case None:
                return page
            case "throttled":
                raise _refused("ThrottledException", 429)
            case "denied":
                raise _refused("AccessDeniedException", 403)
            case "unreachable":
                raise EndpointConnectionError(endpoint_url="https://memory.invalid")
            case "another user's record":
                stranger = {**page["memoryRecordSummaries"][0], "content": {"text": "a stranger's secret"}}
                stranger["namespaces"] = [f"/{kind}/{actor}x/"]
                return {"memoryRecordSummaries": [stranger, *page["memoryRecordSummaries"]]}
            case _:
                return {"memoryRecordSummaries": [{"score": "?"}, *page["memoryRecordSummaries"]]}

    def _page(self, path: str) -> dict[str, Any]:
        if path not in self._pages:
            _, kind, actor, _ = path.split("/")
            self._pages[path] = {
                "memoryRecordSummaries": [
                    {
                        "memoryRecordId": f"mem-{kind}-{actor}-{number:040d}",
                        "content": {"text": text_of(actor, path, number)},
                        "memoryStrategyId": kind,
                        "namespaces": [path],
                        "score": 0.9 - number / 100,
                    }
                    for number in range(RECORDS)
                ]
            }
        return self._pages[path]


def _refused(code: str, status: int) -> ClientError:
    response = {"Error": {"Code": code, "Message": "drawn"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "RetrieveMemoryRecords")


def always_yes(_state: Any, questions: Mapping[str, Any]) -> Any:
    """Open the gate and keep everything, at once."""
    return {name: {"type": "noul", "noul": 0.9} for name in questions}


always_yes.bounded = True  # type: ignore[attr-defined] # it waits for nothing, so a turn calls it in its own thread


def deciding(faults: Faults) -> Callable[[Any, Mapping[str, Any]], Any]:
    """Return `always_yes`, failing as the turn's draw says."""

    def decide(state: Any, questions: Mapping[str, Any]) -> Any:
        actor = state["message"].split()[0]
        stage = "gate" if "gate" in questions else "judge"
        match faults.of(stage, actor, turn_in(state["message"])):
            case None:
                return always_yes(state, questions)
            case "raises":
                raise RuntimeError("drawn")
            case "not a mapping":
                return ["yes"]
            case "no answer":
                return {}
            case _:
                return {name: {"type": "noul", "noul": math.nan} for name in questions}

    return decide


def ask_of(actor: str, turn: int) -> str:
    """Return what a user says on a turn."""
    return f"{actor} turn {turn} which train shall I take tomorrow?"


def turn_in(text: str) -> int:
    """Return the number of the turn that a text was said on."""
    return int(text.split()[2])


class LastBlock(Model):
    """A model that says "Fine." and keeps the block of its last call only."""

    def __init__(self) -> None:
        self._messages: Any = ()

    @property
    def block(self) -> str | None:
        """The block of the last call, looked for when it is asked for: a turn's time is not the fake's."""
        shown = blocks_shown(self._messages) or blocks_shown(self._messages, "memory")
        return shown[-1] if shown else None

    def update_config(self, **model_config: Any) -> None:
        """Accept and ignore configuration."""

    def get_config(self) -> Any:
        """Return an empty configuration."""
        return {}

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterable[Any]:
        """Stream one reply."""
        self._messages = messages
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockDelta": {"delta": {"text": "Fine."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}

    async def structured_output(self, *_: Any, **__: Any) -> Any:
        """Not needed."""
        raise NotImplementedError
        yield {}


def config_of(actor: str) -> AgentCoreMemoryConfig:
    """Return the configuration of one user's session."""
    return AgentCoreMemoryConfig(
        memory_id=MEMORY_ID,
        actor_id=actor,
        session_id=f"session-{actor}",
        retrieval_config={name: RetrievalConfig(top_k=RECORDS + 1, relevance_score=0.0) for name in NAMESPACES},
    )


def agent_with(manager: Any) -> Agent:
    """Return an agent over a manager."""
    return Agent(model=LastBlock(), session_manager=manager, callback_handler=None)


class Talk:
    """One user's conversation, with the seconds that each turn takes.

    Args:
        actor: Who talks.
        agent: With a `LastBlock` as its model.
    """

    def __init__(self, actor: str, agent: Agent) -> None:
        self.actor = actor
        self.agent = agent
        self.whole: list[float] = []
        self.hook: list[float] = []
        """Of each turn the seconds inside the recall hook, where that can be timed."""

    def turn(self, number: int) -> list[str]:
        """Say something; return the lines that the model was shown."""
        started = time.perf_counter()
        self.agent(ask_of(self.actor, number))
        self.whole.append(time.perf_counter() - started)
        model: Any = self.agent.model
        return lines_of(model.block)


def lines_of(block: str | None) -> list[str]:
    """Return the records of a block, a line each."""
    return [line for line in re.sub(r"</?(?:user_context|memory|entry)[^>]*>", "", block or "").splitlines() if line]


class Session(Talk):
    """A conversation over a session manager."""

    def __init__(self, actor: str, manager: Any) -> None:
        super().__init__(actor, agent_with(manager))
        self.manager = manager
        recall, spent = manager.retrieve_customer_context, self.hook

        def timed(event: Any) -> None:
            if event.message["role"] != "user":
                recall(event)
                return
            started = time.perf_counter()
            recall(event)
            spent.append(time.perf_counter() - started)

        manager.retrieve_customer_context = timed


@contextlib.contextmanager
def on_one_cpu() -> Iterator[bool]:
    """Keep every thread of this process, and those to come, on one CPU; tell whether the platform can."""
    if not hasattr(os, "sched_setaffinity"):
        yield False
        return
    before = os.sched_getaffinity(0)
    _pin({min(before)})
    try:
        yield True
    finally:
        _pin(before)


def _pin(cpus: set[int]) -> None:
    for thread in psutil.Process().threads():
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.sched_setaffinity(thread.id, cpus)


def session_managers() -> dict[str, Callable[[str], Talk]]:
    """Return what makes a user's conversation over each session manager."""
    service: Any = FakeService(Faults(0.0))
    policy = RecallPolicy(stats_log="off", select={"max_records": None, "max_context_tokens": None})

    def ours(actor: str, decider: Any) -> Talk:
        return Session(
            actor,
            GatedMemorySessionManager(config_of(actor), boto_session=service, decider=decider, policy=policy),
        )

    def stock(actor: str, **changes: Any) -> Talk:
        config = config_of(actor).model_copy(update=changes)
        return Session(actor, AgentCoreMemorySessionManager(config, boto_session=service))

    return {
        "no recall": lambda actor: stock(actor, retrieval_config=None),
        "stock": stock,
        "no decider": lambda actor: ours(actor, None),
        "gated": lambda actor: ours(actor, always_yes),
    }


class FakeStore(MemoryStore):
    """A store of one user's records in one namespace; answers at once."""

    max_search_results = None
    writable = False
    extraction = None

    def __init__(self, actor: str, namespace: str) -> None:
        self.name = namespace.split("/")[1]
        self.description = f"{self.name} of the user"
        self._entries = [
            MemoryEntry(text_of(actor, namespace, number), metadata={"_id": f"{number}", "_score": 0.9 - number / 100})
            for number in range(RECORDS)
        ]

    async def search(
        self,
        query: str,  # noqa: ARG002
        options: SearchOptions | None = None,  # noqa: ARG002
    ) -> list[MemoryEntry]:
        """Return all of them."""
        return self._entries


def memory_managers() -> dict[str, Callable[[str], Talk]]:
    """Return what makes a user's conversation over each memory manager, over the same stores.

    Strands' own limit of entries is raised to what the stores hold, so that all show the same.
    """
    policy = RecallPolicy(stats_log="off", select={"max_records": None, "max_context_tokens": None})

    def stock(actor: str, **settings: Any) -> Talk:
        return _talk(actor, MemoryManager(_stores(actor), **settings))

    def ours(actor: str, decider: Any) -> Talk:
        return _talk(actor, GatedMemoryManager(_stores(actor), decider=decider, policy=policy))

    return {
        "no recall": lambda actor: stock(actor, injection=False),
        "stock": lambda actor: stock(actor, injection={"max_entries": RECORDS * len(NAMESPACES)}),
        "no decider": lambda actor: ours(actor, None),
        "gated": lambda actor: ours(actor, always_yes),
    }


def _stores(actor: str) -> list[MemoryStore]:
    return [FakeStore(actor, name.replace("{actorId}", actor)) for name in NAMESPACES]


def _talk(actor: str, manager: MemoryManager) -> Talk:
    return Talk(actor, Agent(model=LastBlock(), memory_manager=manager, callback_handler=None))


def compare(makers: Mapping[str, Callable[[str], Talk]], sessions: int, turns: int, what: str) -> bool:
    """Print own time beside stock's; tell whether the median ratio is at most 1.

    Args:
        makers: What makes a user's conversation: "no recall", "stock", "no decider" and "gated".
        sessions: Conversations of each.
        turns: Turns of each conversation.
        what: What is compared, and where, for the title.
    """
    drawn = random.Random(7)
    talks: dict[str, list[Talk]] = {name: [] for name in makers}
    for number in range(sessions):
        actor = f"user{number}"
        group = {name: make(actor) for name, make in makers.items()}
        for turn in range(turns):
            order = drawn.sample(list(group), len(group))  # whoever comes next finds the caches as they are
            lines = {name: sorted(group[name].turn(turn)) for name in order}
            shown = [lines[name] for name in ("stock", "no decider", "gated")]
            if any(one != shown[0] for one in shown) or len(shown[0]) != RECORDS * len(NAMESPACES):
                print(f"FAILED: they show different records on turn {turn} of {actor}")
                return False
        for name, talk in group.items():
            talks[name].append(talk)
    records = RECORDS * len(NAMESPACES)
    print(f"\nown time of {what}, {sessions} sessions x {turns} turns each, {records} records a turn, one conversation")
    print(
        f"{'ms':<12}{'own p50':>9}{'own p99':>9}{'hook p50':>10}"
        f"{'turn p50':>10}{'turn p99':>10}{'turns/s':>9}{'ratio':>7}"
    )
    bare = [seconds for talk in talks["no recall"] for seconds in talk.whole]
    medians: dict[str, float] = {}
    for name, side in talks.items():
        whole = [1000 * seconds for talk in side for seconds in talk.whole]
        row = f"{statistics.median(whole):>10.2f}{_p99(whole):>10.2f}{1000 * len(whole) / sum(whole):>9.0f}"
        if name == "no recall":
            print(f"{name:<12}{'-':>9}{'-':>9}{'-':>10}{row}")
            continue
        own = [turn - 1000 * without for turn, without in zip(whole, bare, strict=True)]
        medians[name] = statistics.median(own)
        hooks = [1000 * seconds for talk in side for seconds in talk.hook]
        hook = f"{statistics.median(hooks):.3f}" if hooks else "-"
        ratio = medians[name] / medians["stock"]
        print(f"{name:<12}{medians[name]:>9.3f}{_p99(own):>9.3f}{hook:>10}{row}{ratio:>7.2f}")
    print("goal: the ratio of the medians of own time, gated to stock, at most 1.00")
    return medians["gated"] <= medians["stock"]


class Watch:
    """Counts what must not happen, and samples memory and threads."""

    def __init__(self, turns: int) -> None:
        self.problems: Counter[str] = Counter()
        self.threads = 0
        self._process = psutil.Process()
        self._turns = turns
        self._rss: list[int] = []
        self._lock = threading.Lock()

    def turn_done(self) -> None:
        """Take a sample after a turn."""
        rss = self._process.memory_info().rss
        with self._lock:
            self._rss.append(rss)
            self.threads = max(self.threads, threading.active_count())

    def growth(self) -> tuple[float, float]:
        """Return the mean resident megabytes of the first and the last tenth of the turns."""
        tenth = max(1, len(self._rss) // 10)
        return statistics.mean(self._rss[:tenth]) / 2**20, statistics.mean(self._rss[-tenth:]) / 2**20


def load(sessions: int, turns: int, share: float) -> bool:
    """Run the load; print what happened and tell whether all is well."""
    faults = Faults(share)
    service = FakeService(faults)
    stats = RecallStats()
    # No breaker: it would skip what the draw says is healthy, and each turn is checked against its own draw.
    policy = RecallPolicy(
        deadline_s=30.0,
        stats_log="off",
        retrieve={"timeout_s": 15.0},
        select={"max_records": None, "max_context_tokens": None},
        breaker=None,
    )
    decide = deciding(faults)
    talks = [
        Session(
            f"user{number}",
            GatedMemorySessionManager(
                config_of(f"user{number}"),
                boto_session=service,  # type: ignore[arg-type]
                decider=decide,
                policy=policy,
                stats=stats,
            ),
        )
        for number in range(sessions)
    ]
    for talk in talks:
        talk.turn(0)  # what a first turn loads is no leak
    watch = Watch(sessions * turns)

    def one_turn(talk: Session, turn: int) -> None:
        try:
            lines = talk.turn(turn)
        except Exception as error:
            watch.problems[f"exception {type(error).__name__}"] += 1
            return
        wanted = _wanted(faults, talk.actor, turn)
        watch.problems["foreign record"] += sum(not line.startswith(f"{talk.actor} ") for line in lines)
        watch.problems["lost record"] += len(set(wanted) - set(lines))
        watch.problems["record that should not be there"] += len(set(lines) - set(wanted))
        watch.problems["record shown twice"] += len(lines) - len(set(lines))
        watch.turn_done()

    started = time.perf_counter()
    with ThreadPoolExecutor(DRIVERS, thread_name_prefix="driver") as drivers:
        for turn in range(1, turns + 1):  # a session's turns follow each other; sessions run side by side
            list(drivers.map(one_turn, talks, [turn] * len(talks)))
    seconds = time.perf_counter() - started
    return _report(watch, stats, talks, seconds, share)


def _wanted(faults: Faults, actor: str, turn: int) -> list[str]:
    """Return the lines that a turn is to show, given its faults: a failed search costs its own namespace."""
    lost = {"throttled", "denied", "unreachable"}
    return [
        text_of(actor, name, number)
        for name in NAMESPACES
        if faults.of("search", actor, turn, name.split("/")[1]) not in lost
        for number in range(RECORDS)
    ]


def _report(watch: Watch, stats: RecallStats, talks: list[Session], seconds: float, share: float) -> bool:
    hook = [1000 * s for talk in talks for s in talk.hook]
    turns = sum(len(talk.whole) for talk in talks) - len(talks)
    first, last = watch.growth()
    # A thread per driver and the pools; asyncio runs a sync agent's loop in one more per turn under way.
    bound = 2 * DRIVERS + POOLED + SLACK_THREADS
    counts = stats.as_dict()
    found = {name: count for name, count in watch.problems.items() if count}
    print(f"\nload, {len(talks)} sessions, {turns} turns, {DRIVERS} at a time, faults in {share:.0%} of each stage")
    print(f"turns/s                    {turns / seconds:.0f}")
    print(f"hook p50 / p99 ms          {statistics.median(hook):.2f} / {_p99(hook):.2f}")
    print(f"threads at most            {watch.threads} (bound {bound})")
    print(f"memory, first / last tenth {first:.1f} / {last:.1f} MB ({last / first - 1:+.1%}, at most {FLAT:+.0%})")
    print(f"decider errors             {counts['decider_errors']} {counts['decider_errors_by_kind']}")
    print(f"retrieval errors           {counts['retrieval_errors']} {counts['retrieval_errors_by_kind']}")
    print(f"records dropped            {counts['records_dropped']}")
    print(f"turn failures              {counts['turn_failures']}")
    print(f"problems                   {found or 'none'}")
    flat, bounded = last <= first * (1 + FLAT), watch.threads <= bound
    return flat and bounded and not found and not counts["turn_failures"]


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


def main() -> int:
    """Run both parts."""
    parser = argparse.ArgumentParser(description="Load, isolation and own time beside the stock manager.")
    parser.add_argument("--sessions", type=int, default=64)
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--faults", type=float, default=0.05, help="share of each stage's calls that fail")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    fast = {}
    for what, makers in (("session managers", session_managers()), ("memory managers", memory_managers())):
        with on_one_cpu() as alone:
            fast[what] = compare(makers, given.sessions, given.turns, f"{what} on {'one CPU' if alone else 'all CPUs'}")
        if alone:
            compare(makers, given.sessions, given.turns, f"{what} on all CPUs")
    sound = load(given.sessions, given.turns, given.faults)
    well = sound and fast["session managers"]
    slow = "" if fast["memory managers"] else "; the memory manager is above its goal of own time"
    print(f"\n{'all is well' if well else 'FAILED: see above'}{slow}")
    return int(not well)


if __name__ == "__main__":
    sys.exit(main())
