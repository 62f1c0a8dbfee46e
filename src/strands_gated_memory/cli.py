"""The command line: `strands-gated-memory demo`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from .errors import ConfigurationError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0, or 2 with one line on stderr when the input is wrong."""
    parser = argparse.ArgumentParser(prog="strands-gated-memory", description="Gated memory for Strands agents.")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="one conversation, stock beside gated, offline")
    demo.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    demo.add_argument("--persona", type=Path, metavar="FILE", help="records and conversation; default: the shipped one")
    options = parser.parse_args(arguments)
    try:
        return _demo(options.persona, as_json=options.json)
    except ConfigurationError as error:
        print(f"strands-gated-memory: {error}", file=sys.stderr)
        return 2


def _demo(path: Path | None, *, as_json: bool) -> int:
    try:
        import moto  # noqa: F401
        import rich  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            f"the demo needs {error.name}; run: pip install 'strands-gated-memory[demo]'"
        ) from error
    from .demo.arms import arm_figures, run_arms, turn_rows
    from .demo.persona import load_persona
    from .embedded.decider import EmbeddedDecider

    persona = load_persona(path)
    decider = EmbeddedDecider()
    decider.warm()
    results = run_arms(persona, decider)
    arms = {name: arm_figures(arm, persona) for name, arm in results.items()}
    turns = turn_rows(results["gated"], persona)
    if as_json:
        print(json.dumps({"arms": arms, "turns": turns}, indent=1, ensure_ascii=False))
    else:
        from .demo.report import print_report

        print_report(persona.name, arms, turns, results["gated"])
    return 0
