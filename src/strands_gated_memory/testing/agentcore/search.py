"""RetrieveMemoryRecords: the records of a namespace, most similar to the query first."""

from __future__ import annotations

from typing import Any

from .namespaces import scope_of
from .paging import page_of
from .ranking import score_of
from .records import matching, summary_of
from .stored import MemoryState
from .world import World

DEFAULT_TOP_K = 10
"""Used when a request has no topK. The service has a default too, which its model does not state."""


def retrieve(world: World, memory: MemoryState, parameters: dict[str, Any]) -> dict[str, Any]:
    """Rank the records in scope by the similarity of their stored text, as it is, to the query.

    `searchQuery` has 1 to 10,000 characters; `topK`, 1 to 100, bounds the whole result and `maxResults`, 1 to 100
    and by default 20, a page of it. Equal similarities are in order of the record id. Planted summaries of the
    namespace come first and count towards topK.
    """
    criteria = parameters["searchCriteria"]
    matches = scope_of(parameters)
    with world.lock:
        records = matching(memory, parameters, criteria.get("memoryStrategyId"), criteria.get("metadataFilters"))
    cosines = world.ranker.cosines(criteria["searchQuery"], [record.text for record in records])
    rows = [((0, float(index), ""), summary) for index, summary in enumerate(world.planted_in(matches))]
    ranked = sorted(zip(cosines, records, strict=True), key=lambda row: (-row[0], row[1].record_id))
    rows += [
        ((1, -cosine, record.record_id), summary_of(record) | {"score": score_of(cosine)}) for cosine, record in ranked
    ]
    best = rows[: int(criteria.get("topK") or DEFAULT_TOP_K)]
    page = page_of(best, lambda row: row[0], "RetrieveMemoryRecords", parameters)
    return page._replace(items=[body for _, body in page.items]).as_response("memoryRecordSummaries")
