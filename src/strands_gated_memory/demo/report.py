"""The demo's output for people: a table beside the post's figures, the decisions, the counters."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from .arms import LOOKUP_MS, ArmResult, Path

POST = {
    "retrievals": ("8", "3", "3"),
    "records_injected": ("147", "25", "16"),
    "context_tokens": ("~2,471", "~369", "~253"),
    "modelled_memory_service_ms": ("4,230", "1,900", "1,745"),
    "decider_calls": ("0", "14", "14"),
    "decider_ms": ("", "4,867", "7,210"),
}
"""The original post's figures: stock, gated by strands-decider 2B, gated by Jev. Another store, another machine."""

ROWS = {
    "retrievals": "turns that searched memory",
    "lookups": "namespace lookups",
    "records_injected": "records injected",
    "context_tokens": "context tokens",
    "conversation_memory_tokens": "memory tokens, all model calls",
    "modelled_memory_service_ms": f"memory service ms (modelled, {LOOKUP_MS} a turn)",
    "decider_calls": "decider calls",
    "decider_ms": "decider ms",
    "decider_errors": "decider errors",
    "must_have_recall": "must-have recall",
    "closed_turns": "turns the gate closed",
    "block_after_tool_result": "block on the call after a tool result",
}


def print_report(
    persona_name: str, arms: dict[str, dict[str, Any]], turns: list[dict[str, Any]], gated: ArmResult, path: Path
) -> None:
    """Print the whole report to stdout."""
    console = Console(width=118, highlight=False)
    over = {"session-manager": "", "memory-manager": ", over memory_manager="}[path]
    table = Table(title=f"{persona_name}: {len(turns)} turns on an emulated AgentCore Memory{over}")
    table.add_column("")
    for name in arms:
        table.add_column(name, justify="right")
    beside = POST if path == "session-manager" else {}  # the post is about session managers
    for name in ("post: stock", "post: 2B", "post: Jev") if beside else ():
        table.add_column(name, justify="right", style="dim")
    for key, label in ROWS.items():
        cells = [_cell(arm[key]) for arm in arms.values() if key in arm]
        if cells:
            table.add_row(label, *cells, *(beside.get(key, ("", "", "")) if beside else ()))
    console.print(table)
    decisions = Table(title="The gated arm, turn by turn")
    for heading in ("turn", "message", "needs memory", "gate", "P", "searched", "records", "must-haves missing"):
        decisions.add_column(heading, justify="right" if heading in ("turn", "P", "records") else "left")
    for row in turns:
        decisions.add_row(
            str(row["turn"]),
            row["user"],
            "yes" if row["needs_memory"] else "no",
            row["gate"] or "",
            "" if row["probability"] is None else f"{row['probability']:.3f}",
            ", ".join(name.split("/")[1] if name.count("/") > 1 else name for name in row["searched"]),
            str(row["records_injected"]),
            ", ".join(row["missing"]),
        )
    console.print(decisions)
    console.print(f"The gated arm's counters, print({path.replace('-', '_')}.stats):", style="bold")
    print(gated.stats)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    if isinstance(value, float):
        return f"{value:,.2f}" if value <= 1 else f"{value:,.0f}"
    return f"{value:,}"
