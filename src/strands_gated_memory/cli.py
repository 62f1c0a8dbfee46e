"""The command line: `strands-gated-memory demo`, `check` and `ask`."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .deciders.resolve import resolve_text
from .errors import ConfigurationError, DeciderUnavailable, StageError

PARTLY_DEAD = 3
"""The exit status of `check` for a list of which a member does not answer."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status.

    0; 1 when `check` or `ask` got no answer, or nothing can be printed; 2 with one line on stderr when the input is
    wrong; 3 when `check` got an answer from a list, but not from every member of it; 130 when interrupted.
    """
    parser = argparse.ArgumentParser(prog="strands-gated-memory", description="Gated memory for Strands agents.")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="one conversation, stock beside gated, offline")
    demo.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    demo.add_argument("--persona", type=Path, metavar="FILE", help="records and conversation; default: the shipped one")
    demo.add_argument(
        "--path",
        choices=("session-manager", "memory-manager"),
        default="session-manager",
        help="what recalls; default: session-manager",
    )
    check = commands.add_parser("check", help="is a decider there, how fast is it, does it tell yes from no")
    ask = commands.add_parser("ask", help="show a decider's decisions for one message")
    for command in (check, ask):
        command.add_argument(
            "spec", help='a decider, such as embedded, jev, http://127.0.0.1:8000; "jev,embedded" falls back'
        )
    ask.add_argument("message", help="what a user might say")
    ask.add_argument("--record", action="append", default=[], metavar="TEXT", help="a record to judge; repeatable")
    ask.add_argument(
        "--namespace", action="append", metavar="PATH", help="a namespace to route to; default: preferences and facts"
    )
    ask.add_argument(
        "--previous",
        action="append",
        default=[],
        metavar="TEXT",
        help="what was said before: user, then assistant, oldest first; repeat it for each text",
    )
    options = parser.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show a character shows a question mark
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        status = _run(options)
        if sys.stdout is not None:  # None: it was closed before we started
            sys.stdout.flush()  # here, where a reader that has gone is handled
    except BrokenPipeError:
        _leave_stdout()
        return 1
    except OSError as error:
        _leave_stdout()
        print(f"strands-gated-memory: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130  # as shells report it
    except ConfigurationError as error:
        print(f"strands-gated-memory: {error}", file=sys.stderr)
        return 2
    return status


def _leave_stdout() -> None:
    """Keep the interpreter from writing what is left, once more, when it ends."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(options: argparse.Namespace) -> int:
    if options.command == "check":
        return _check(options.spec)
    if options.command == "ask":
        return _ask(options.spec, options.message, options.namespace or _NAMESPACES, options.record, options.previous)
    return _demo(options.persona, options.path, as_json=options.json)


_NAMESPACES = ("/preferences/{actorId}/", "/facts/{actorId}/")


def _check(spec: str) -> int:
    from .deciders.check import check
    from .terminal import lines

    report = check(resolve_text(spec))
    print("\n".join(lines(report, spec)))
    if report.partly_dead:
        return PARTLY_DEAD
    return 0 if report.available else 1


def _ask(spec: str, message: str, namespaces: Sequence[str], records: Sequence[str], previous: Sequence[str]) -> int:
    from . import warm
    from .terminal import decisions

    if len(previous) % 2:
        raise ConfigurationError(
            f"--previous was given {len(previous)} time{'s' if len(previous) > 1 else ''}: texts before the message "
            'come in pairs, user then assistant, oldest first; write --previous "what the user said" '
            '--previous "what the assistant replied"'
        )
    decider = resolve_text(spec)
    try:
        warm(decider)
    except DeciderUnavailable as error:
        cause = error.__cause__
        print(f"strands-gated-memory: {cause if isinstance(cause, StageError) else error}", file=sys.stderr)
        return 1
    decided = decisions(decider, message, namespaces, records, previous)
    print("\n".join(decided))
    return 1 if decided[0].startswith("gate failed") else 0


def _demo(persona_file: Path | None, path: Any, *, as_json: bool) -> int:
    try:
        import moto  # noqa: F401
        import rich  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            f"the demo needs {error.name}; run: pip install 'strands-gated-memory[demo]', "
            "or from a clone: pip install '.[demo]'"
        ) from error
    from .demo.arms import arm_figures, run_arms, turn_rows
    from .demo.persona import load_persona
    from .embedded.decider import EmbeddedDecider

    persona = load_persona(persona_file)
    decider = EmbeddedDecider()
    decider.warm()
    results = run_arms(persona, decider, path=path)
    arms = {name: arm_figures(arm, persona) for name, arm in results.items()}
    turns = turn_rows(results["gated"], persona)
    if as_json:
        print(json.dumps({"arms": arms, "turns": turns}, indent=1))
    else:
        from .demo.report import print_report

        print_report(persona.name, arms, turns, results["gated"], path)
    return 0
