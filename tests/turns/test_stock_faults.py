"""Every stock fault of facts/agentcore.md sections 4 and 5 that concerns recall, by name or number, on both managers.

The parent's case is a strict xfail where bedrock-agentcore 1.25.0 still has the fault, and passes where it was fixed.

Section 5, not tests here:
    5.11  one CreateEvent per message: write path, the parent's.
    5.12  ListEvents page size: restore path, the parent's.
    5.13  timestamps in the future: write path, the parent's.
    5.14  history dropped while ListEvents is not consistent: restore path, the parent's.
    5.15  no multi-agent support: not recall; the parent raises and so do we.
    5.16  import fails with Strands >= 1.56: releases before 1.23.1, which `_versions.py` refuses.
    5.17  redaction did nothing: write path; test_session.py checks it on both managers.
    5.18  region_name became the converter: constructor; test_migration.py checks every argument.
    5.20  tool messages cut at 100 events: restore path, the parent's.
    5.28  MemoryStore wanted: another feature of the SDK.
    5.30  adapters overwrite the history: other packages.

Section 4, not tests here:
    persisted before insertion: no fault.
    user hooks see two blocks: follows from 5.1; in turn mode there is none in the messages to see.
    `event.message` is not always `messages[-1]`: "continuation-merged" is its only way to recall.
    `AfterInvocationEvent.resume` is searched for: wanted, it is the input of an invocation (test_ask.py).
    agent as tool is searched for: wanted, its input is its ask (test_ask.py).
    redaction comes after the search: a guardrail speaks when the model is called; no manager can know before.
    two user messages after a model error: write path, the parent's.
    an exception in an override aborts the turn: about subclasses; test_reporting.py checks that ours never raises.
    `async def` override never awaited, late patching in async mode: about subclasses; ours is a plain method.
    `relevance_score=0.0` disables the filter: no fault.
    BidiAgent transcripts lost: write path; test_bidi.py checks that neither recalls.
    graph and swarm nodes refuse a manager, two agents merge their histories: write path, the parent's.
"""

import faults_section_4_asks
import faults_section_4_records
import faults_section_5
import pytest
from fault_register import CASES

REGISTERED = (faults_section_4_asks, faults_section_4_records, faults_section_5)


@pytest.mark.parametrize(("check", "kind"), CASES)
def test_stock_fault(bench, caplog, check, kind):
    """The fault is not there; see the check's own sentence."""
    check(bench, kind, caplog)
