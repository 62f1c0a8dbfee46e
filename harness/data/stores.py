"""`store build|seed|wait|dump|drop`: a memory to measure on, in AWS or emulated, by the same calls.

What was done is kept in a small state file, so that each step finds the one before. In AWS every step prints what it
costs, by prices that may be out of date, and asks; `--yes` answers. The emulation lives in this process alone: its
writes are kept in the state file and made again at the start of each step. It extracts nothing, so the records that
the data file expects are written in the extraction's place, which is said.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import boto3
from botocore.exceptions import BotoCoreError, ClientError, WaiterError
from pydantic import Field, ValidationError, model_validator
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.prompt import Confirm

from strands_gated_memory.testing import local_agentcore, seed_records

from ..errors import HarnessError, RunFailed
from ..files import write_text
from .datasets import DATA, Item, SeedConversation, StoredRecord

REGION = "us-east-1"
EXPIRY_DAYS = 30
"""How long events are kept; the service allows 7 to 365 days."""
PRICES = {"event": 0.25 / 1000, "record a month": 0.75 / 1000, "search": 0.50 / 1000}
"""USD, as third parties quoted the service's price page in 2026; none was checked against a bill."""

Strategy = Literal["SEMANTIC", "USER_PREFERENCE", "SUMMARIZATION", "EPISODIC"]
_REQUEST: Mapping[str, str] = {
    "SEMANTIC": "semanticMemoryStrategy",
    "USER_PREFERENCE": "userPreferenceMemoryStrategy",
    "SUMMARIZATION": "summaryMemoryStrategy",
    "EPISODIC": "episodicMemoryStrategy",
}
_BY_KEY: Mapping[str, Strategy] = {
    "facts": "SEMANTIC",
    "preferences": "USER_PREFERENCE",
    "summaries": "SUMMARIZATION",
    "episodes": "EPISODIC",
}
_WRITES = ("create_memory", "create_event", "batch_create_memory_records")


class StoreFile(Item):
    """What a store is built from: data/conversations.json, data/persona.json, or what `dump` wrote."""

    name: str = ""
    actor_id: str = Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9\-_/:]*$", max_length=255)
    namespaces: dict[str, str] = Field(min_length=1)
    """Path template per key; a key becomes its strategy's name."""
    strategies: dict[str, Strategy] = Field(default_factory=dict)
    """Strategy per key; by default that of its records, else by the key's name."""
    seed_conversations: tuple[SeedConversation, ...] = ()
    records: tuple[StoredRecord, ...] = ()
    """What to store, or what the extraction is expected to make of the conversations."""

    @model_validator(mode="after")
    def _keys_exist(self) -> StoreFile:
        for record in self.records:
            if record.namespace not in self.namespaces:
                raise ValueError(f"record {record.id!r} has the namespace {record.namespace!r}, which does not exist")
        for key in self.namespaces:
            self.strategy(key)
        return self

    def strategy(self, key: str) -> str:
        """Return a namespace's strategy.

        Raises:
            ValueError: Nothing says which.
        """
        of_records = {record.strategy for record in self.records if record.namespace == key and record.strategy}
        found = self.strategies.get(key) or (of_records.pop() if len(of_records) == 1 else None) or _BY_KEY.get(key)
        if found is None or found not in _REQUEST:
            raise ValueError(f"namespace {key!r} has no strategy; say one of {', '.join(_REQUEST)} in strategies")
        return found

    def template(self, key: str) -> str:
        """Return a namespace's template with one slash at its end: without it the path of Bob is that of Bobby too."""
        return self.namespaces[key].rstrip("/") + "/"


class State(Item):
    """What has been done so far."""

    version: Literal[1] = 1
    where: Literal["aws", "local"]
    region: str
    name: str
    memory_id: str
    actor_id: str
    seeded: tuple[str, ...] = ()
    """Sessions whose conversation has been written, and "records"."""
    journal: tuple[tuple[str, dict[str, Any]], ...] = ()
    """The emulation's writes, to be made again."""


@dataclass
class Store:
    """One memory and the clients that reach it.

    Attributes:
        control: A `bedrock-agentcore-control` client.
        data: A `bedrock-agentcore` client.
        where: "aws" or "local".
        state: What has been done; None before `build`.
        path: Where the state is kept.
    """

    control: Any
    data: Any
    where: Literal["aws", "local"]
    region: str
    path: Path
    state: State | None = None
    journal: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def keep(self, **changes: Any) -> None:
        """Change the state and write it, in one step."""
        assert self.state is not None
        self.state = self.state.model_copy(update={**changes, "journal": tuple(self.journal)})
        write_text(self.path, self.state.model_dump_json(indent=1) + "\n")


# The steps


def build(store: Store, file: StoreFile, name: str, console: Console, *, timeout_s: float) -> None:
    """Create the memory with one strategy per namespace, and wait until it is active.

    Raises:
        HarnessError: There is one already.
        RunFailed: It was not active in time, or failed.
    """
    if store.state is not None:
        raise HarnessError(
            f"{store.path} knows the memory {store.state.memory_id} already; `store drop` it first, or give --state"
        )
    strategies = [
        {_REQUEST[file.strategy(key)]: {"name": key, "namespaceTemplates": [file.template(key)]}}
        for key in file.namespaces
    ]
    token = hashlib.sha256(f"{name} {file.actor_id} {time.time_ns()}".encode()).hexdigest()
    made = store.control.create_memory(
        clientToken=token, name=name, eventExpiryDuration=EXPIRY_DAYS, memoryStrategies=strategies
    )
    memory_id = made["memory"]["id"]
    store.state = State(where=store.where, region=store.region, name=name, memory_id=memory_id, actor_id=file.actor_id)
    store.keep()  # first: a memory that nobody remembers is one that nobody drops
    delay = 5 if store.where == "aws" else 1
    with console.status(f"waiting for {memory_id} to become active"):
        try:
            store.control.get_waiter("memory_created").wait(
                memoryId=memory_id, WaiterConfig={"Delay": delay, "MaxAttempts": max(1, round(timeout_s / delay))}
            )
        except WaiterError as error:
            reason = (error.last_response or {}).get("memory", {}).get("failureReason")
            raise RunFailed(f"the memory {memory_id} is not active: {reason or error}") from error
    console.print(f"built {memory_id} with {', '.join(f'{key} ({file.strategy(key)})' for key in file.namespaces)}")


def seed(store: Store, file: StoreFile, console: Console, *, records: bool) -> None:
    """Write the conversations as events, one each; or the records themselves. What is written already is skipped."""
    state = _built(store)
    if records:
        if "records" in state.seeded:
            console.print("the records are there already")
            return
        _write_records(store, file)
        store.keep(seeded=(*state.seeded, "records"))
        console.print(f"wrote {len(file.records)} records")
        return
    if not file.seed_conversations:
        raise HarnessError("the data file has no seed_conversations; write its records with --records")
    written = 0
    for conversation in file.seed_conversations:
        if conversation.session_id in store.state.seeded:  # type: ignore[union-attr]
            continue
        token = hashlib.sha256(f"{state.memory_id} {conversation.session_id}".encode()).hexdigest()
        store.data.create_event(
            memoryId=state.memory_id,
            actorId=file.actor_id,
            sessionId=conversation.session_id,
            eventTimestamp=datetime.datetime.now(datetime.timezone.utc),
            clientToken=token,  # the same at a second try, so that nothing is written twice
            payload=[
                {"conversational": {"role": role, "content": {"text": text}}} for role, text in conversation.messages
            ],
        )
        written += 1
        store.keep(seeded=(*store.state.seeded, conversation.session_id))  # type: ignore[union-attr]
    console.print(f"wrote {written} conversations as events; {len(file.seed_conversations) - written} were there")
    if store.where == "local" and file.records and "records" not in store.state.seeded:  # type: ignore[union-attr]
        _write_records(store, file)
        store.keep(seeded=(*store.state.seeded, "records"))  # type: ignore[union-attr]
        console.print(
            f"the emulation extracts nothing: the {len(file.records)} records that the data file expects were "
            "written in the extraction's place"
        )


def wait(store: Store, console: Console, *, expect: int, quiet_s: float, timeout_s: float, poll_s: float) -> int:
    """Wait until as many records are there as expected, or no more have come for a while; return how many.

    Raises:
        RunFailed: Time is up.
    """
    started = changed = time.monotonic()
    before = -1
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed} records"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("extraction", total=expect or None)
        while True:
            counts = {key: len(found) for key, found in listed(store).items()}
            total, now = sum(counts.values()), time.monotonic()
            told = ", ".join(f"{key} {count}" for key, count in counts.items())
            progress.update(task, completed=total, description=f"extraction ({told})")
            if total != before:
                before, changed = total, now
            if (expect and total >= expect) or (total and now - changed >= quiet_s):
                return total
            if now - started >= timeout_s:
                raise RunFailed(
                    f"after {timeout_s:g} s there are {total} records ({told})"
                    + (f" of the {expect} expected" if expect else "")
                    + "; extraction takes minutes: wait again, or look for failed extraction jobs"
                )
            time.sleep(poll_s)


def dump(store: Store, file: StoreFile | None, path: Path) -> int:
    """Save the records as a data file that `seed --records` and the other commands read; return how many."""
    found = listed(store)
    templates, types = _spaces(store)
    rows = []
    for key, summaries in found.items():
        ordered = sorted(summaries, key=lambda row: (str(row.get("createdAt")), row["content"]["text"]))
        rows += [
            {
                "id": f"{key[:1]}{at:03}",
                "namespace": key,
                "strategy": types[key],
                "text": row["content"]["text"],
                "created_at": row["createdAt"].astimezone(datetime.timezone.utc).isoformat(),
            }
            for at, row in enumerate(ordered, 1)
        ]
    state = _built(store)
    document = {
        "name": file.name if file else state.name,
        "actor_id": state.actor_id,
        "about": f"{len(rows)} long-term records as a store held them ({store.where}).",
        "namespaces": templates,
        "strategies": types,
        "records": rows,
    }
    write_text(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return len(rows)


def drop(store: Store, console: Console) -> None:
    """Delete the memory with all that it holds, and forget it."""
    state = _built(store)
    try:
        store.control.delete_memory(memoryId=state.memory_id)
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") != "ResourceNotFoundException":
            raise
        console.print(f"the memory {state.name or state.memory_id} was gone already")
    store.path.unlink(missing_ok=True)
    console.print(f"dropped the memory {state.name or state.memory_id}")


def listed(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Return the summaries of all records, by namespace key."""
    state = _built(store)
    templates, _ = _spaces(store)
    found: dict[str, list[dict[str, Any]]] = {}
    for key, template in templates.items():
        path = template.replace("{actorId}", state.actor_id).partition("{")[0]  # over all sessions
        pages = store.data.get_paginator("list_memory_records").paginate(
            memoryId=state.memory_id, namespacePath=path, maxResults=100
        )
        found[key] = [row for page in pages for row in page.get("memoryRecordSummaries") or ()]
    return found


def _spaces(store: Store) -> tuple[dict[str, str], dict[str, str]]:
    """Return template and strategy type per namespace key, as the memory itself has them."""
    memory = store.control.get_memory(memoryId=_built(store).memory_id)["memory"]
    templates, types = {}, {}
    for strategy in memory.get("strategies") or ():
        paths = strategy.get("namespaceTemplates") or strategy.get("namespaces") or ()
        if paths:
            name, kind = strategy["name"], strategy["type"]
            templates[name] = paths[0].replace("{memoryStrategyId}", strategy["strategyId"]).rstrip("/") + "/"
            types[name] = kind
    return templates, types


def _write_records(store: Store, file: StoreFile) -> None:
    if not file.records:
        raise HarnessError("the data file has no records")
    seed_records(
        store.data,
        _built(store).memory_id,
        [{"text": record.text, "namespace": file.template(record.namespace)} for record in file.records],
        actor_id=file.actor_id,
    )


def _built(store: Store) -> State:
    if store.state is None:
        raise HarnessError(f"there is no memory yet ({store.path} is missing); run `store build` first")
    return store.state


# Costs


def estimate(step: str, file: StoreFile | None, *, records: bool = False) -> list[str]:
    """Return what a step costs in AWS, in words."""
    kept = len(file.records) if file else 0
    if step == "seed" and file is not None and not records:
        events = len(file.seed_conversations)
        return [
            f"{events} events: about ${events * PRICES['event']:.5f}",
            f"some {kept or 4 * events} extracted records: about "
            f"${(kept or 4 * events) * PRICES['record a month']:.5f} a month, until dropped",
        ]
    if step == "seed":
        return [f"{kept} records: about ${kept * PRICES['record a month']:.5f} a month, until dropped"]
    return {
        "build": ["one memory: nothing by itself; it counts against the region's limit of memories"],
        "wait": ["ListMemoryRecords, some calls a minute: no price of it is known to us"],
        "dump": ["ListMemoryRecords, one call per 100 records: no price of it is known to us"],
        "drop": ["nothing; EVERYTHING in the memory is deleted, for good"],
    }[step]


def agreed(
    step: str, lines: Sequence[str], console: Console, *, where: str, yes: bool, ask: Callable[[], bool]
) -> bool:
    """Say what a step costs and let the user decide; in the emulation there is nothing to decide.

    Raises:
        HarnessError: Nobody can be asked.
    """
    if where == "local":
        return True
    console.print(f"{step} in AWS:")
    for line in lines:
        console.print(f"  {line}")
    console.print(
        "  (prices as quoted by third parties in 2026; look at https://aws.amazon.com/bedrock/agentcore/pricing)"
    )
    if yes:
        return True
    if not sys.stdin.isatty():
        raise HarnessError(f"store {step} acts on AWS and nobody can be asked; read the above and pass --yes")
    return ask()


# Opening


@contextmanager
def opened(arguments: argparse.Namespace) -> Iterator[Store]:
    """Yield the store: clients of AWS, or of an emulation to which everything written so far is written again."""
    path: Path = arguments.state or Path(f"store-{arguments.where}.json")
    state = _state(path)
    if state is not None and state.where != arguments.where:
        raise HarnessError(f"{path} is of a store in {state.where}; pass --{state.where}, or another --state")
    region = arguments.region or (state.region if state else None) or REGION
    if arguments.where == "aws":
        session = boto3.Session(region_name=region)
        store = Store(
            session.client("bedrock-agentcore-control"), session.client("bedrock-agentcore"), "aws", region, path, state
        )
        if arguments.memory_id:
            store.state = State(
                where="aws",
                region=region,
                name="",
                memory_id=arguments.memory_id,
                actor_id=arguments.actor_id or "user",
            )
        yield store
        return
    if arguments.memory_id:
        raise HarnessError("--memory-id is for --aws: an emulated memory is known by its state file")
    with local_agentcore(region_name=region):
        session = boto3.Session(region_name=region)
        control, data = session.client("bedrock-agentcore-control"), session.client("bedrock-agentcore")
        store = Store(control, data, "local", region, path, state)
        if state is not None:
            store.state = _made_again(state, control, data)
            store.journal = list(state.journal)
        store.control, store.data = _Journaled(control, store.journal), _Journaled(data, store.journal)
        yield store


class _Journaled:
    """A client whose writes are noted."""

    def __init__(self, client: Any, journal: list[tuple[str, dict[str, Any]]]) -> None:
        self._client = client
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if name not in _WRITES:
            return method

        def noted(**request: Any) -> Any:
            answer = method(**request)
            self._journal.append((name, json.loads(json.dumps(request, default=str))))
            return answer

        return noted


def _made_again(state: State, control: Any, data: Any) -> State:
    memory_id = state.memory_id
    for name, request in state.journal:
        if name == "create_memory":
            memory_id = control.create_memory(**request)["memory"]["id"]
            control.get_memory(memoryId=memory_id)
        else:
            getattr(data, name)(**{**request, "memoryId": memory_id})
    return state.model_copy(update={"memory_id": memory_id})


def _state(path: Path) -> State | None:
    if not path.exists():
        return None
    try:
        return State.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise HarnessError(f"{path}: not the state of a store ({error}); move it away, or give --state") from error


def read_store_file(path: Path) -> StoreFile:
    """Read what a store is built from.

    Raises:
        HarnessError: Names file and field.
    """
    try:
        return StoreFile.model_validate_json(path.read_bytes())
    except OSError as error:
        raise HarnessError(f"{path}: cannot be read: {error}") from error
    except ValidationError as error:
        shown = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'the whole'}: {one['msg'].removeprefix('Value error, ')}"
            for one in error.errors()[:5]
        )
        raise HarnessError(f"{path}: {shown}") from error


# The command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    steps = parser.add_subparsers(dest="step", required=True, metavar="build|seed|wait|dump|drop")
    about = {
        "build": "create the memory with its strategies",
        "seed": "write the conversations, or the records",
        "wait": "wait for the extraction",
        "dump": "save the records as a data file",
        "drop": "delete the memory",
    }
    for name, line in about.items():
        step = steps.add_parser(name, help=line, description=line)
        where = step.add_mutually_exclusive_group(required=True)
        where.add_argument(
            "--aws", dest="where", action="store_const", const="aws", help="your AWS account; costs money"
        )
        where.add_argument("--local", dest="where", action="store_const", const="local", help="an emulation, here")
        step.add_argument(
            "--data", type=Path, default=DATA / "conversations.json", metavar="FILE", help="what to store"
        )
        step.add_argument(
            "--state", type=Path, metavar="FILE", help="what was done (default: store-<where>.json, here)"
        )
        step.add_argument("--region", help=f"default: the state's, else {REGION}")
        step.add_argument("--memory-id", help="a memory that was not built here (--aws)")
        step.add_argument("--actor-id", help="whose records, with --memory-id")
        step.add_argument("--yes", action="store_true", help="act without asking")
        if name == "build":
            step.add_argument("--name", default="gated_memory_harness", help="of the memory (default: %(default)s)")
        if name == "seed":
            step.add_argument("--records", action="store_true", help="write the file's records, not its conversations")
        if name in ("build", "wait"):
            step.add_argument("--timeout-s", type=float, default=900.0, help="default: %(default)g")
        if name == "wait":
            step.add_argument("--expect", type=int, help="that many records are enough (default: only quiet counts)")
            step.add_argument(
                "--quiet-s", type=float, help="enough when no record came for so long (default: 90; local: 0)"
            )
            step.add_argument("--poll-s", type=float, help="seconds between looks (default: 10; local: 0.1)")
        if name == "dump":
            step.add_argument(
                "--to", type=Path, default=Path("store-records.json"), metavar="FILE", help="default: %(default)s"
            )


def run(arguments: argparse.Namespace) -> int:
    """Do one step."""
    console = Console()
    step, local = arguments.step, arguments.where == "local"
    file = read_store_file(arguments.data) if step in ("build", "seed") else None
    lines = estimate(step, file, records=getattr(arguments, "records", False))
    asked = lambda: Confirm.ask(f"{step}?", console=console, default=False)  # noqa: E731
    if not agreed(step, lines, console, where=arguments.where, yes=arguments.yes, ask=asked):
        console.print("nothing was done")
        return 1
    try:
        with opened(arguments) as store:
            if step == "build":
                assert file is not None
                build(store, file, arguments.name, console, timeout_s=arguments.timeout_s)
            elif step == "seed":
                assert file is not None
                seed(store, file, console, records=arguments.records)
            elif step == "wait":
                total = wait(
                    store,
                    console,
                    expect=arguments.expect or 0,
                    quiet_s=arguments.quiet_s if arguments.quiet_s is not None else 0.0 if local else 90.0,
                    timeout_s=arguments.timeout_s,
                    poll_s=arguments.poll_s if arguments.poll_s is not None else 0.1 if local else 10.0,
                )
                console.print(f"{total} records are there")
            elif step == "dump":
                path = arguments.to
                console.print(f"wrote {dump(store, file, path)} records to {path}")
            else:
                drop(store, console)
    except (ClientError, BotoCoreError) as error:
        raise RunFailed(f"{step} failed: {error}") from error
    return 0
