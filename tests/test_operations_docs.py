"""Every name that docs/operations.md tells an operator to look for is one that the code writes."""

import re
from pathlib import Path

import pytest

from strands_gated_memory import RecallPolicy, RecallStats
from strands_gated_memory.deciders.resolve import _NAMED

trace_file = pytest.importorskip("strands_gated_memory.reporting.trace_file")

DOCS = Path(__file__).parents[1] / "docs" / "operations.md"
TEXT = DOCS.read_text(encoding="utf-8")
CUMULATIVE = RecallStats().as_dict()
QUERIES = [block for block in re.findall(r"```\n(# .*?)```", TEXT, re.DOTALL) if "filter" in block]
INSIGHTS = set(
    "filter stats fields sort limit parse by as and ispresent like max min sum count avg pct abs bin desc d m".split()
)


def known(name):
    """Tell whether a dotted name is a counter."""
    head, _, rest = name.partition(".")
    return head in CUMULATIVE and (not rest or rest == "*" or isinstance(CUMULATIVE[head], dict))


def test_the_table_of_counters_is_complete():
    """Each counter is explained, and each one that is explained exists."""
    section = TEXT.split("\n## Counters\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (.*?) \|", section, re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"`([a-z_.*]+)`", cell)}

    assert {name for name in named if not known(name)} == set()
    assert set(CUMULATIVE) == {name.partition(".")[0] for name in named}
    assert {f"gate.{outcome}" for outcome in CUMULATIVE["gate"]} <= named


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.splitlines()[0][2:40])
def test_a_query_names_fields_that_are_written(query):
    """Counters, or fields of a trace line; the rest is given a name by the query itself."""
    body = re.sub(r'"[^"]*"|/[^/\n]*/|@\w+|#.*', " ", query)
    own = set(re.findall(r"\bas (\w+)", body))
    if "parse" in query:
        own |= {"stage", "kind", "n", "cause"}
    names = set(re.findall(r"\b[a-z_]+(?:\.\w+)*\b", body)) - INSIGHTS - own

    wrong = {name for name in names if not (known(name) or in_trace_line(name))}

    assert wrong == set()


def in_trace_line(name):
    """Tell whether a dotted name, array positions included, leads to a field of a trace line."""
    model = trace_file.TraceLine
    for part in name.split("."):
        if part.isdigit():
            continue
        if part not in model.model_fields:
            return False
        found = re.search(r"Trace\w+", str(model.model_fields[part].annotation))
        model = getattr(trace_file, found.group()) if found else model
    return True


def test_settings_and_commands_exist():
    """Settings, deciders and permissions that the runbook names."""
    for name in ("stats_log", "stats_every", "deadline_s", "on_failure", "breaker"):
        assert name in RecallPolicy.model_fields
        assert f"{name}" in TEXT
    assert {"embedded", "jev"} <= set(_NAMED)
    assert "drop_instructions" in RecallPolicy.model_fields["validator"].annotation.model_fields
