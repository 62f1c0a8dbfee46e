"""One emulated AgentCore Memory per module; every test has a user of its own in it."""

import boto3
import pytest

from strands_gated_memory.testing import HashingEncoder, local_agentcore

# Before they are imported: the checks of these modules are no test functions, and assert all the same.
pytest.register_assert_rewrite(
    "turn_builders", "memory_builders", "faults_section_4_asks", "faults_section_4_records", "faults_section_5"
)


@pytest.fixture(scope="module")
def _emulation():
    with local_agentcore(encoder=HashingEncoder()) as core:
        yield core, boto3.Session(region_name="us-east-1")


@pytest.fixture
def bench(_emulation):
    from turn_builders import Bench

    core, session = _emulation
    core.clear_faults()
    core.calls.clear()
    bench = Bench(core, session)
    yield bench
    bench.end()
    core.clear_faults()
