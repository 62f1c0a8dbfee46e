"""The emulation as two subclasses of moto's response classes. Imports moto, so import it inside functions only."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, cast
from urllib.parse import parse_qsl

from botocore import xform_name
from moto.bedrockagentcore.responses import BedrockAgentCoreResponse
from moto.bedrockagentcorecontrol.models import BedrockAgentCoreControlBackend
from moto.bedrockagentcorecontrol.responses import BedrockAgentCoreControlResponse
from moto.core.responses import ActionResult

from . import events, records
from .calls import MEMORY_OPERATIONS, Call
from .protocol import check_limits
from .state import Memory, World

_CREATED = {"BatchCreateMemoryRecords", "CreateEvent"}

# moto makes a new response object per request and passes it nothing.
_worlds: list[World] = []
_entering = threading.Lock()


@contextmanager
def serving(world: World) -> Iterator[None]:
    """Let a world answer requests, unless a newer one does.

    Raises:
        RuntimeError: One is served for another thread.
    """
    with _entering:
        if any(other.thread != world.thread for other in _worlds):
            raise RuntimeError(
                "local_agentcore is active in another thread, and there is one AWS per process: enter it once "
                "and share the handle between threads"
            )
        _worlds.append(world)
    try:
        yield
    finally:
        _worlds.remove(world)


def _world() -> World:
    newest = _worlds[-1:]
    if not newest:
        raise RuntimeError("no local_agentcore is active: this request came after it ended")
    return newest[0]


class MemoryResponse(BedrockAgentCoreResponse):
    """The data plane. Operations other than the memory ones stay moto's."""

    def __init__(self) -> None:
        super().__init__()
        # The body is read as it was sent: moto's parser rewrites documents and timestamps.
        self.automated_parameter_parsing = False

    def _get_action(self) -> str:
        # The default also looks for "Action=" in the body, which a record's text may well hold.
        return str(self._get_action_from_method_and_request_uri(self.normalized_request))

    def _answered(self) -> tuple[int, dict[str, Any], str]:
        """Note a request, apply faults and limits, and hand it to its operation; moto turns errors into answers."""
        world, operation = _world(), self._get_action()
        parameters = json.loads(self.body or "{}") | dict(parse_qsl(self.parsed_url.query)) | self.uri_match
        world.calls.append(Call(operation, parameters))
        world.wait_and_fail(operation, parameters)
        check_limits(operation, parameters)
        memory = world.memory(parameters["memoryId"], self.current_account, self.region)
        with nullcontext() if operation == "RetrieveMemoryRecords" else world.lock:
            body = _OPERATIONS[operation](world, memory, parameters)
        # Written here: moto's serializer would drop what the service model does not know.
        status = 201 if operation in _CREATED else 200
        return status, {"status": status, "Content-Type": "application/json"}, json.dumps(body)


_OPERATIONS: dict[str, Callable[[World, Memory, dict[str, Any]], dict[str, Any]]] = {
    name: vars(events).get(xform_name(name)) or vars(records)[xform_name(name)] for name in MEMORY_OPERATIONS
}
for _name in MEMORY_OPERATIONS:
    setattr(MemoryResponse, xform_name(_name), MemoryResponse._answered)


class ControlResponse(BedrockAgentCoreControlResponse):
    """moto's control plane over the world's own state, with `namespaceTemplates`."""

    @property
    def backend(self) -> BedrockAgentCoreControlBackend:
        """The control plane of the request's account and region in this world."""
        return _world().control(self.current_account, self.region)

    def create_memory(self) -> ActionResult:
        """CreateMemory; a strategy's `namespaceTemplates` stand in for its legacy `namespaces`."""
        for strategy in self.params.get("memoryStrategies") or ():
            _take_templates(*strategy.values())
        return _with_templates(super().create_memory())

    def update_memory(self) -> ActionResult:
        """UpdateMemory; templates as in `create_memory`."""
        changes = self.params.get("memoryStrategies") or {}
        for strategy in changes.get("addMemoryStrategies") or ():
            _take_templates(*strategy.values())
        _take_templates(*(changes.get("modifyMemoryStrategies") or ()))
        return _with_templates(super().update_memory())

    def get_memory(self) -> ActionResult:
        """GetMemory; every strategy has both `namespaces` and `namespaceTemplates`."""
        return _with_templates(super().get_memory())

    def delete_memory(self) -> ActionResult:
        """DeleteMemory; its events and records go with it."""
        result = super().delete_memory()
        _world().forget(cast("dict[str, str]", result.result)["memoryId"])
        return result


def _take_templates(*strategies: dict[str, Any]) -> None:
    for settings in strategies:
        if settings.get("namespaceTemplates") and not settings.get("namespaces"):
            settings["namespaces"] = settings["namespaceTemplates"]


def _with_templates(result: ActionResult) -> ActionResult:
    memory = cast("dict[str, Any]", result.result)["memory"]
    strategies = [row | {"namespaceTemplates": row["namespaces"]} for row in memory.get("strategies") or ()]
    return ActionResult({"memory": memory | {"strategies": strategies}})
