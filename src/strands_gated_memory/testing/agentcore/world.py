"""All state of one `local_agentcore`: memories, control plane, faults, calls, ranker. Gone when it ends."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from .calls import CallLog
from .errors import not_found
from .faults import FaultBoard
from .ranking import Ranker, SentenceEncoder
from .stored import MemoryState, PlantedSummary

if TYPE_CHECKING:
    from moto.bedrockagentcorecontrol.models import BedrockAgentCoreControlBackend


class World:
    """One emulated service.

    Args:
        encoder: Ranks records; None for the package's own encoder, loaded at the first search.
        strict_memory_ids: Whether an id must have been created through the control plane, in the account and
            region of the request. Otherwise every well-formed id names a memory, empty at first and the same
            in every region.
    """

    def __init__(self, encoder: SentenceEncoder | None, *, strict_memory_ids: bool) -> None:
        self.lock = threading.RLock()
        self.calls = CallLog()
        self.faults = FaultBoard()
        self.ranker = Ranker(encoder)
        self.planted: list[PlantedSummary] = []
        self.closed = threading.Event()
        """Set when the context manager ends: sleeping requests wake up."""
        self._strict = strict_memory_ids
        self._memories: dict[str, MemoryState] = {}
        self._deleted: set[str] = set()
        self._control: dict[tuple[str, str], BedrockAgentCoreControlBackend] = {}

    def control(self, account_id: str, region_name: str) -> BedrockAgentCoreControlBackend:
        """Return moto's control plane of an account and region, made for this world alone."""
        from moto.bedrockagentcorecontrol.models import BedrockAgentCoreControlBackend

        with self.lock:
            found = self._control.get((account_id, region_name))
            if found is None:
                found = BedrockAgentCoreControlBackend(region_name, account_id)
                self._control[account_id, region_name] = found
            return found

    def memory(self, memory_id: str, account_id: str, region_name: str) -> MemoryState:
        """Return what a memory holds.

        Args:
            memory_id: An id or an ARN.
            account_id: Account of the request.
            region_name: Region of the request.

        Raises:
            ServiceError: ResourceNotFoundException for an id that was deleted through the control plane and, when
                ids are strict, for one that was not created there.
        """
        name = memory_id.rsplit(":memory/", 1)[-1]
        with self.lock:
            unknown = self._strict and name not in self.control(account_id, region_name).memories
            if unknown or name in self._deleted:
                raise not_found(f"Memory not found: {name}")
            return self._memories.setdefault(name, MemoryState())

    def forget(self, memory_id: str) -> None:
        """Drop a memory and refuse its id from now on."""
        with self.lock:
            self._memories.pop(memory_id, None)
            self._deleted.add(memory_id)

    def planted_in(self, matches: Any) -> list[Any]:
        """Return the planted summaries whose namespace passes a test, in the order of planting."""
        with self.lock:
            return [planted.summary for planted in self.planted if matches(planted.namespace)]
