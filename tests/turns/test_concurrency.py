"""Threads, forks, ends: a recall under way never keeps a process, an agent or another turn."""

import gc
import os
import signal
import subprocess
import sys
import threading
import weakref

import pytest
from turn_builders import FACTS, PREFERENCES, Hanging, blocks_per_call, broken, judging, last_block, until, yes

from strands_gated_memory import RecallPipeline, RecallPolicy, Record, Turn, resolve_decider
from strands_gated_memory.reporting import log


def test_one_decider_serves_many_managers_at_once(bench):
    """Eight agents in threads over one decider: each gets the answers about its own message."""

    def decide(state, questions):
        word = state["message"].split()[-1].rstrip("?")
        return {
            name: {"noul": 0.9 if name == "gate" or word in question["instructions"] else 0.01}
            for name, question in questions.items()
        }

    words = [f"drink{number}" for number in range(8)]
    bench.remember(*(f"Likes {word}" for word in words))
    policy = {"retrieve": {"timeout_s": 20.0}, "deadline_s": 40.0}
    agents = [bench.agent(bench.manager(decider=decide, session_id=word, policy=policy)) for word in words]

    def ask(agent, word):
        for _ in range(3):
            agent(f"What about {word}?")

    threads = [threading.Thread(target=ask, args=pair) for pair in zip(agents, words, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [last_block(agent) for agent in agents] == [[f"Likes {word}"] for word in words]
    assert all(blocks_per_call(agent) == [1, 1, 1] for agent in agents)


def test_closing_during_a_recall_neither_waits_nor_raises(bench):
    """close() from another thread while the search runs: it returns meanwhile, and the turn ends as ever."""
    bench.remember("Likes tea")
    with Hanging() as hanging:
        manager = bench.at_each("RetrieveMemoryRecords", lambda path: hanging()).manager(decider=yes)
        agent = bench.agent(manager)
        turn = threading.Thread(target=agent, args=("What do I drink?",))
        turn.start()
        assert hanging.begun.wait(30)
        manager.close()
        assert not hanging.ended.is_set()
    turn.join(60)

    assert not turn.is_alive()
    assert blocks_per_call(agent) == [1]
    assert manager.stats.turns == 1


def test_an_agent_dropped_in_the_middle_of_a_turn_is_collected(bench):
    """Its turn's generator is thrown away while the model speaks: no block, no agent, no state remains."""
    import asyncio

    bench.remember("Likes tea")
    manager = bench.manager(decider=yes)

    async def begin():
        agent = bench.agent(manager)
        stream = agent.stream_async("What do I drink?")
        await anext(stream)
        await stream.aclose()
        return weakref.ref(agent)

    gone = asyncio.run(begin())
    gc.collect()

    assert gone() is None
    assert len(manager._conversations) == 0


def test_a_late_search_of_a_dropped_manager_harms_nothing():
    release, pipeline = threading.Event(), RecallPipeline(None, RecallPolicy(deadline_s=0.05))

    def search(namespace):
        release.wait(60)
        return [Record("Likes tea.", namespace)]

    recall = pipeline.recall(Turn("Drink?"), [FACTS], search)
    gone = weakref.ref(pipeline)
    del pipeline
    release.set()
    until(lambda: gc.collect() is not None and gone() is None)

    assert recall.records == ()
    assert [lookup.error for lookup in recall.trace.lookups] == ["timeout"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_child_forked_after_a_recall_recalls():
    """As a preloading server does: the child has none of its parent's threads, and decides all the same."""
    pipeline = RecallPipeline(
        resolve_decider(judging(tea=0.9)), RecallPolicy(deadline_s=20.0, retrieve={"timeout_s": 10.0})
    )

    def recalled():
        return pipeline.recall(Turn("Drink?"), [FACTS], lambda name: [Record("Likes tea.", name)])

    assert recalled().records
    child = os.fork()
    if child == 0:
        recall = recalled()
        fine = bool(recall.records) and recall.trace.gate.outcome == "open"
        os._exit(0 if fine else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


_ENDS = """
import threading, warnings
warnings.simplefilter("ignore")
from strands_gated_memory.recall import RecallPipeline
from strands_gated_memory.policy import RecallPolicy
from strands_gated_memory.core.types import Turn

class Hangs:
    def decide(self, state, questions):
        threading.Event().wait()

def search(namespace):
    threading.Event().wait()

recall = RecallPipeline(Hangs(), RecallPolicy(deadline_s=0.1)).recall(Turn("Drink?"), ["/facts/"], search)
print([call.error for call in recall.trace.decider_calls], [lookup.error for lookup in recall.trace.lookups])
"""


def test_the_interpreter_ends_while_decider_and_search_hang():
    done = subprocess.run([sys.executable, "-c", _ENDS], capture_output=True, text=True, check=False, timeout=300)

    assert done.stdout.strip() == "['timeout'] ['timeout']"
    assert (done.returncode, done.stderr) == (0, "")


_LOCKS = {
    "counters": lambda manager: manager.stats._lock,
    "log": lambda manager: log._lock,
    "agents": lambda manager: manager._conversations._lock,
    "pinned": lambda manager: manager._source.pipeline._searcher._pinned._lock,
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("name", _LOCKS)
def test_a_child_forked_while_another_thread_holds_a_lock_recalls(bench, tmp_path, name):
    """A server forks whenever it likes; the thread that would let go of the lock is not in the child."""
    bench.remember("Likes tea").remember("Works at night", namespace=PREFERENCES)
    manager = bench.manager(
        decider=broken,
        policy={"router": {"pinned": (PREFERENCES,)}},
        namespaces=(FACTS, PREFERENCES),
        tracing={"trace_path": tmp_path / "traces.jsonl", "trace_max_bytes": 1},
    )
    agent = bench.agent(manager)
    agent("What do I drink?")

    with _LOCKS[name](manager):
        child = os.fork()
        if child == 0:
            fine = False
            try:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(60)  # ends the child when it hangs
                agent("What do I drink?")
                fine = manager.stats.turns == 2 and bool(last_block(agent)) and (tmp_path / "traces.jsonl.1").exists()
            finally:
                os._exit(0 if fine else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
