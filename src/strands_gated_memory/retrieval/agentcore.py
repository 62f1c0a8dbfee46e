"""Namespace templates and paths. Pure."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)
from botocore.parsers import ResponseParserError

from ..core.types import Dropped, Record, SearchResult
from ..errors import (
    AccessDenied,
    BadResponse,
    ConfigurationError,
    NotFound,
    Rejected,
    RetrievalError,
    RetrievalTimeout,
    RetrievalUnavailable,
    ServiceFailed,
    Throttled,
)

PLACEHOLDERS = ("actorId", "sessionId", "memoryStrategyId")


def check_template(namespace: str) -> None:
    """Check that a namespace template can be filled.

    Raises:
        ConfigurationError: It is empty, or has an unknown or empty placeholder, one with a format, or an unbalanced
            brace.
    """
    if not namespace.strip():
        raise ConfigurationError(
            f"retrieval_config namespace {namespace!r} is empty; write the path where a strategy of yours keeps its "
            "records, such as '/facts/{actorId}/': the records of every user stand under '/'"
        )
    try:
        fields = [field for field in string.Formatter().parse(namespace) if field[1] is not None]
    except ValueError as error:
        raise ConfigurationError(
            f"retrieval_config namespace {namespace!r} has an unbalanced brace: {error}"
        ) from error
    for _, name, format_spec, conversion in fields:
        if format_spec or conversion:
            raise ConfigurationError(
                f"retrieval_config namespace {namespace!r} formats the placeholder {name!r}; write {{{name}}} alone"
            )
        if name not in PLACEHOLDERS:
            raise ConfigurationError(
                f"retrieval_config namespace {namespace!r} has the placeholder {{{name}}}; "
                f"only {', '.join(f'{{{known}}}' for known in PLACEHOLDERS)} can be filled"
            )


def fill(namespace: str, *, actor_id: str, session_id: str, strategy_id: str | None) -> str:
    """Return the path to search: the template with one slash at the end, its placeholders filled.

    Without the slash a search for "/users/Bob" would match "/users/Bobby" too. Slashes of an id are kept:
    "Bob/" is another user than "Bob", and an empty value must not search the folder above.
    """
    template = namespace.rstrip("/") + "/"
    return template.format(actorId=actor_id, sessionId=session_id, memoryStrategyId=strategy_id or "")


def in_scope(record_namespace: str, path: str) -> bool:
    """Tell whether a record's namespace is the searched path or below it, segment by segment."""
    return record_namespace.startswith(path) or (not record_namespace.endswith("/") and record_namespace + "/" == path)


def is_of_session(record_namespace: str, template: str, path: str, session_id: str) -> bool:
    """Tell whether a record in a searched path belongs to the running session.

    Args:
        record_namespace: The record's own namespace, the path or one below it.
        template: The namespace as configured.
        path: The searched path: the template, filled. Only what stands below it can name the session, as the user
            may have the same id.
        session_id: The running session.
    """
    return "{sessionId}" in template or f"/{session_id}/" in f"/{record_namespace[len(path) :].strip('/')}/"


def is_summary(record_namespace: str, text: str) -> bool:
    """Tell whether a record sums up a session."""
    return "summar" in record_namespace.lower() or text.lstrip().startswith("<topic")


MAX_TOP_K = 100
"""The service's limit of topK and of a page; the SDK's configuration allows 1,000."""
MAX_QUERY_CHARACTERS = 10_000
"""The service's limit of searchQuery."""

_ERRORS: dict[str, type[RetrievalError]] = {
    "ThrottledException": Throttled,
    "ThrottlingException": Throttled,
    "TooManyRequestsException": Throttled,
    "AccessDeniedException": AccessDenied,
    "UnrecognizedClientException": AccessDenied,
    "ExpiredTokenException": AccessDenied,
    "ResourceNotFoundException": NotFound,
    "ValidationException": Rejected,
    "InvalidInputException": Rejected,
    "ServiceQuotaExceededException": Rejected,
    "ServiceException": ServiceFailed,
    "InternalServerException": ServiceFailed,
}
_BY_STATUS: dict[int, type[RetrievalError]] = {401: AccessDenied, 403: AccessDenied, 404: NotFound, 429: Throttled}
"""For errors without a code that is known, such as those of a proxy or a firewall."""
_SERVER_ERROR = 500


@dataclass(frozen=True)
class NamespaceSearch:
    """How one configured namespace is searched."""

    key: str
    """The namespace as configured."""
    path: str
    """The path to search, placeholders filled, ending with a slash."""
    top_k: int
    """How many records to ask for; more than `MAX_TOP_K` asks for that many."""
    relevance_score: float
    """Records with a lower score are left out; a record without a score passes."""
    strategy_id: str | None = None
    """Sent as a filter when set."""
    whole: bool = False
    """Whether to list every record instead of searching: pinned namespaces."""

    @property
    def finds_own_summaries_alone(self) -> bool:
        """Whether every record that it finds is a summary of the running session."""
        return "{sessionId}" in self.key and is_summary(self.path, "")


@dataclass(frozen=True)
class TurnSearch:
    """The searches of one turn: a function from namespace to what it holds."""

    retriever: AgentCoreRetriever
    query: str
    """1 to 10,000 characters."""
    depends_on: bool
    """Whether the conversation holds the session's beginning: kept results of another turn hold for the same value."""

    def __call__(self, namespace: str) -> SearchResult:
        """Search one namespace; see `AgentCoreRetriever.search`."""
        return self.retriever.search(namespace, self.query, holds_beginning=self.depends_on)


class AgentCoreRetriever:
    """Searches the namespaces of one memory for one session.

    Args:
        client: A `bedrock-agentcore` boto3 client.
        memory_id: The memory.
        session_id: The running session, whose own summary may be skipped.
        searches: How each configured namespace is searched, by key.
        skip_own_summary: Whether to leave out the running session's own summary while the conversation holds what
            it sums up.
    """

    def __init__(
        self,
        client: Any,
        memory_id: str,
        session_id: str,
        searches: Mapping[str, NamespaceSearch],
        *,
        skip_own_summary: bool,
    ) -> None:
        self._client = client
        self._memory_id = memory_id
        self._session_id = session_id
        self._searches = dict(searches)
        self._skip_own_summary = skip_own_summary

    def moved_to(self, memory_id: str, session_id: str, searches: Mapping[str, NamespaceSearch]) -> AgentCoreRetriever:
        """Return a retriever with the same client for another memory, session or set of paths."""
        return AgentCoreRetriever(
            self._client, memory_id, session_id, searches, skip_own_summary=self._skip_own_summary
        )

    def search_for(self, query: str, *, holds_beginning: bool = True) -> TurnSearch:
        """Return the search function of one turn.

        Args:
            query: The user's message; over 10,000 characters it loses its middle.
            holds_beginning: Whether the conversation still holds the beginning of the session.
        """
        return TurnSearch(self, cut_query(query), holds_beginning)

    def search(self, namespace: str, query: str, *, holds_beginning: bool = True) -> SearchResult:
        """Search one namespace.

        Args:
            namespace: A configured namespace.
            query: 1 to 10,000 characters.
            holds_beginning: As in `search_for`.

        Raises:
            RetrievalError: The kind says what failed.
        """
        search = self._searches[namespace]
        skips_own = self._skip_own_summary and holds_beginning
        records: list[Record] = []
        dropped: list[Dropped] = []
        try:
            for summary in self._summaries(search, query):
                record, reason = self._read(summary, search, skips_own)
                if reason is None:
                    records.append(record)
                else:
                    dropped.append(Dropped(record, reason))
        except (ClientError, BotoCoreError, ResponseParserError) as error:
            raise translated(error) from error
        return SearchResult(tuple(records), tuple(dropped))

    def _summaries(self, search: NamespaceSearch, query: str) -> Iterator[Any]:
        wanted = MAX_TOP_K if search.whole else min(search.top_k, MAX_TOP_K)
        request: dict[str, Any] = {
            "memoryId": self._memory_id,
            "namespacePath": search.path,
            "maxResults": wanted,
        }
        if search.whole:
            ask = self._client.list_memory_records
            if search.strategy_id:
                request["memoryStrategyId"] = search.strategy_id
        else:
            ask = self._client.retrieve_memory_records
            request["searchCriteria"] = {"searchQuery": query, "topK": wanted}
            if search.strategy_id:
                request["searchCriteria"]["memoryStrategyId"] = search.strategy_id
        got = 0
        while True:
            for summary in _summaries_of(page := _page(ask, request)):
                yield summary
                got += 1
                if got >= wanted:
                    return
            token = page.get("nextToken")
            if not token or token == request.get("nextToken"):
                return
            request["nextToken"] = token

    def _read(self, summary: Any, search: NamespaceSearch, skips_own: bool) -> tuple[Record, str | None]:
        """Return a summary as a record, and why it is left out, None if it is not."""
        try:
            text, own = summary["content"]["text"], (summary.get("namespaces") or (search.path,))[0]
            if not isinstance(text, str) or not isinstance(own, str):
                return Record("", search.key), "malformed"
            score = summary.get("score")
            record = Record(
                text,
                search.key,
                None if score is None else float(score),
                summary.get("memoryRecordId"),
                summary.get("createdAt"),
                summary.get("metadata"),
            )
        except (AttributeError, KeyError, TypeError, ValueError, IndexError, OverflowError):
            return Record("", search.key), "malformed"
        if not in_scope(own, search.path):
            return record, "out_of_scope"
        if not search.whole and record.score is not None and record.score < search.relevance_score:
            return record, "below_relevance_score"
        of_session = skips_own and is_of_session(own, search.key, search.path, self._session_id)
        if of_session and is_summary(own, record.text):
            return record, "own_summary"
        return record, None


def _page(ask: Callable[..., Any], request: Mapping[str, Any]) -> Any:
    try:
        return ask(**request)
    except (AttributeError, TypeError, ValueError, KeyError, OverflowError, RecursionError) as error:
        # botocore's parser, when the body is JSON of another shape than the model's
        raise BadResponse(f"the reply cannot be parsed ({type(error).__name__})") from error


def _summaries_of(page: Any) -> Sequence[Any]:
    """Return a page's records.

    botocore takes a body that is cut, empty or no JSON at all for an empty answer. The list is a required
    member of the service's model, so a reply without one is not the service's.
    """
    found = page.get("memoryRecordSummaries")
    if found is None:
        raise BadResponse("the reply holds no list of records")
    return cast("Sequence[Any]", found)


def cut_query(query: str) -> str:
    """Return a query within the service's limit.

    A longer one loses its middle, at words where there are any: the question may stand first or last.
    """
    if len(query) <= MAX_QUERY_CHARACTERS:
        return query
    half = (MAX_QUERY_CHARACTERS - len(_CUT)) // 2
    return _to_last_word(query[:half]) + _CUT + _to_last_word(query[: -half - 1 : -1])[::-1]


_CUT = " … "


def _to_last_word(text: str) -> str:
    """Return a text without its last word, which was cut; the text itself where that would lose half of it."""
    at_word = next(iter(text.rsplit(None, 1)), "")  # nothing to split where all of it is space
    return at_word if len(at_word) > len(text) // 2 else text


def translated(error: Exception) -> RetrievalError:
    """Return the error of this package that one of boto3's means."""
    if isinstance(error, ClientError):
        details = error.response.get("Error", {})
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        found = _ERRORS.get(details.get("Code", ""))
        if found is None:
            found = _BY_STATUS.get(status) or (ServiceFailed if status >= _SERVER_ERROR else Rejected)
        return found(f"{details.get('Code')}: {details.get('Message')}")
    if isinstance(error, ResponseParserError):
        return BadResponse(str(error))
    if isinstance(error, ConnectTimeoutError | ReadTimeoutError):
        return RetrievalTimeout(str(error))
    if isinstance(error, ParamValidationError):
        return Rejected(str(error))
    if isinstance(error, NoCredentialsError):
        return AccessDenied(str(error))
    return RetrievalUnavailable(str(error))
