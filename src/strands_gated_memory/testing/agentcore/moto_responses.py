"""The emulation as two subclasses of moto's response classes. Imports moto, so import it inside functions only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from urllib.parse import parse_qsl

from moto.bedrockagentcore.responses import BedrockAgentCoreResponse
from moto.bedrockagentcorecontrol.models import BedrockAgentCoreControlBackend
from moto.bedrockagentcorecontrol.responses import BedrockAgentCoreControlResponse
from moto.core.responses import ActionResult

from .service import Reply, Request, answer
from .world import World

_current_world: Callable[[], World] | None = None


def serve_from(current_world: Callable[[], World] | None) -> None:
    """Say where requests find the world that answers them."""
    global _current_world  # noqa: PLW0603 - moto makes a new response object per request and passes it nothing
    _current_world = current_world


def _world() -> World:
    if _current_world is None:
        raise RuntimeError("no local_agentcore is active: this request came after it ended")
    return _current_world()


class _Answered(ActionResult):
    """A response that is written already; moto would drop what its model does not know."""

    def execute_result(self, context: Any) -> Any:  # noqa: ARG002 - moto's signature
        reply = cast("Reply", self.result)
        return reply.status, dict(reply.headers), reply.body


class MemoryResponse(BedrockAgentCoreResponse):
    """The data plane. Operations other than the memory ones stay moto's."""

    def __init__(self) -> None:
        super().__init__()
        # The body is read as it was sent: moto's parser rewrites documents and timestamps.
        self.automated_parameter_parsing = False

    def _get_action(self) -> str:
        # The default also looks for "Action=" in the body, which a record's text may well hold.
        return self._get_action_from_method_and_request_uri(self.normalized_request)

    def _answered(self) -> ActionResult:
        request = Request(
            operation=self._get_action(),
            account_id=self.current_account,
            region_name=self.region,
            located=dict(parse_qsl(self.parsed_url.query)) | self.uri_match,
            body=self.body,
        )
        return _Answered(answer(_world(), request))

    def batch_create_memory_records(self) -> ActionResult:
        """BatchCreateMemoryRecords."""
        return self._answered()

    def batch_delete_memory_records(self) -> ActionResult:
        """BatchDeleteMemoryRecords."""
        return self._answered()

    def batch_update_memory_records(self) -> ActionResult:
        """BatchUpdateMemoryRecords."""
        return self._answered()

    def create_event(self) -> ActionResult:
        """CreateEvent."""
        return self._answered()

    def delete_event(self) -> ActionResult:
        """DeleteEvent."""
        return self._answered()

    def delete_memory_record(self) -> ActionResult:
        """DeleteMemoryRecord."""
        return self._answered()

    def get_event(self) -> ActionResult:
        """GetEvent."""
        return self._answered()

    def get_memory_record(self) -> ActionResult:
        """GetMemoryRecord."""
        return self._answered()

    def list_actors(self) -> ActionResult:
        """ListActors."""
        return self._answered()

    def list_events(self) -> ActionResult:
        """ListEvents."""
        return self._answered()

    def list_memory_records(self) -> ActionResult:
        """ListMemoryRecords."""
        return self._answered()

    def list_sessions(self) -> ActionResult:
        """ListSessions."""
        return self._answered()

    def retrieve_memory_records(self) -> ActionResult:
        """RetrieveMemoryRecords."""
        return self._answered()


class ControlResponse(BedrockAgentCoreControlResponse):
    """moto's control plane over the world's own state, with `namespaceTemplates`."""

    @property
    def backend(self) -> BedrockAgentCoreControlBackend:
        """The control plane of the request's account and region in this world."""
        return _world().control(self.current_account, self.region)

    def create_memory(self) -> ActionResult:
        """CreateMemory; a strategy's `namespaceTemplates` stand in for its legacy `namespaces`."""
        for strategy in self.params.get("memoryStrategies") or ():
            _take_templates(strategy)
        return _with_templates(super().create_memory())

    def update_memory(self) -> ActionResult:
        """UpdateMemory; templates as in `create_memory`."""
        changes = self.params.get("memoryStrategies") or {}
        for strategy in changes.get("addMemoryStrategies") or ():
            _take_templates(strategy)
        for change in changes.get("modifyMemoryStrategies") or ():
            _take_templates({"change": change})
        return _with_templates(super().update_memory())

    def get_memory(self) -> ActionResult:
        """GetMemory; every strategy has both `namespaces` and `namespaceTemplates`."""
        return _with_templates(super().get_memory())

    def delete_memory(self) -> ActionResult:
        """DeleteMemory; its events and records go with it."""
        result = super().delete_memory()
        _world().forget(cast("dict[str, str]", result.result)["memoryId"])
        return result


def _take_templates(strategy: dict[str, Any]) -> None:
    for settings in strategy.values():
        if settings.get("namespaceTemplates") and not settings.get("namespaces"):
            settings["namespaces"] = settings["namespaceTemplates"]


def _with_templates(result: ActionResult) -> ActionResult:
    memory = cast("dict[str, Any]", result.result)["memory"]
    strategies = [row | {"namespaceTemplates": row["namespaces"]} for row in memory.get("strategies") or ()]
    return ActionResult({"memory": memory | {"strategies": strategies}})
