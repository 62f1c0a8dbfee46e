"""One AgentCore Memory behind moto's threaded server per module, and a decision model, both on 127.0.0.1."""

from pathlib import Path

import pytest

# Before they are imported: their checks assert.
pytest.register_assert_rewrite("fault_world")

from fault_cases import CASES  # noqa: E402
from fault_world import MATRIX, STAGES, World, serving_agentcore  # noqa: E402

from strands_gated_memory.runtime.guard import reset_breakers  # noqa: E402


def pytest_collection_modifyitems(items):
    for item in items:  # those of other folders too
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.allow_hosts(["127.0.0.1"]))


def pytest_terminal_summary(terminalreporter):
    if not MATRIX:
        return
    width = max(map(len, CASES))
    terminalreporter.section("faults")
    terminalreporter.write_line(f"{'fault':<{width}}" + "".join(f"  {stage:<34}" for stage in STAGES).rstrip())
    for name in CASES:
        cells = [MATRIX.get((name, stage), "") for stage in STAGES]
        terminalreporter.write_line(f"{name:<{width}}" + "".join(f"  {cell:<34}" for cell in cells).rstrip())


@pytest.fixture(scope="module")
def _agentcore():
    with serving_agentcore() as memory:
        yield memory


@pytest.fixture
def world(_agentcore):
    reset_breakers()
    with World(_agentcore) as one:
        yield one
    reset_breakers()
