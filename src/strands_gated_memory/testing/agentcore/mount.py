"""Mounts the emulation: moto's `mock_aws`, our response classes in its URL tables, a clean environment."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from .handle import LocalAgentCore
from .ranking import SentenceEncoder
from .world import World

_CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
_REGIONS = ("AWS_DEFAULT_REGION", "AWS_REGION")
_ENDPOINTS = {
    # Each of these would send a client to another address than the one that moto listens for.
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
    "AWS_USE_FIPS_ENDPOINT": "false",
    "AWS_USE_DUALSTACK_ENDPOINT": "false",
}


class _Mount:
    """The one mount of the process and the worlds in it; requests go to the newest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worlds: list[World] = []
        self._thread: int | None = None
        self._undo = ExitStack()

    def add(self, world: World, region_name: str) -> None:
        with self._lock:
            if self._worlds and self._thread != threading.get_ident():
                raise RuntimeError(
                    "local_agentcore is active in another thread, and there is one AWS per process: enter it once "
                    "and share the handle between threads"
                )
            if not self._worlds:
                with ExitStack() as undo:
                    _mount(undo, self._newest, region_name)
                    self._undo = undo.pop_all()
                self._thread = threading.get_ident()
            self._worlds.append(world)

    def remove(self, world: World) -> None:
        with self._lock:
            world.closed.set()
            self._worlds.remove(world)
            if not self._worlds:
                self._undo.close()

    def _newest(self) -> World:
        worlds = self._worlds[-1:]
        if not worlds:
            raise RuntimeError("no local_agentcore is active: this request came after it ended")
        return worlds[0]


_MOUNT = _Mount()


@contextmanager
def local_agentcore(
    *,
    region_name: str = "us-east-1",
    encoder: SentenceEncoder | None = None,
    strict_memory_ids: bool = False,
) -> Iterator[LocalAgentCore]:
    """Answer every `bedrock-agentcore` and `bedrock-agentcore-control` client in this process from memory.

    boto3 clients made inside, from the default session or another, need no credentials and reach nothing outside;
    neither does any other AWS client, as moto answers those. State is fresh on each entry. Entered again in the
    same thread, the inner one answers until it ends, then the outer one again; entered in a second thread at the
    same time, it raises. Requests may come from any thread. On exit everything is as before: environment, moto's
    tables, boto3's default session.

    A `boto3.Session` made before this process first imported moto (the first entry does) knows nothing of it: pass
    its clients to `LocalAgentCore.attach`, or make the session inside.

    What it does not do: extract records from events, enforce rates or expiry, check IAM, index metadata.

    Args:
        region_name: Where the ready-made memory is created; also the region of clients that have no other, when
            none is configured in the environment.
        encoder: Ranks searches; None for the package's own, loaded at the first search.
        strict_memory_ids: Answer ResourceNotFoundException for a memory id that was not created through the control
            plane in the region of the request. By default every well-formed id is a memory, empty at first and the
            same one in every region, unless it was deleted.

    Yields:
        The handle: memory id, calls, faults.

    Raises:
        ImportError: moto is not installed: `pip install 'strands-gated-memory[testing]'`, or from a clone
            `pip install '.[testing]'`.
        RuntimeError: It is active in another thread.
    """
    world = World(encoder, strict_memory_ids=strict_memory_ids)
    _MOUNT.add(world, region_name)
    try:
        yield LocalAgentCore(world, region_name)
    finally:
        _MOUNT.remove(world)


def _mount(undo: ExitStack, newest: Callable[[], World], region_name: str) -> None:
    try:
        from moto import mock_aws
        from moto.bedrockagentcore import urls as data_urls
        from moto.bedrockagentcorecontrol import urls as control_urls
    except ImportError as error:
        raise ImportError(
            "local_agentcore needs moto: pip install 'strands-gated-memory[testing]', "
            "or from a clone: pip install '.[testing]'"
        ) from error
    from . import moto_responses

    _clean_environment(undo, region_name)
    mock = mock_aws()
    mock.start()
    undo.callback(_stop, mock)
    moto_responses.serve_from(newest)
    undo.callback(moto_responses.serve_from, None)
    for table, response in (
        (data_urls.url_paths, moto_responses.MemoryResponse),
        (control_urls.url_paths, moto_responses.ControlResponse),
    ):
        undo.callback(table.update, dict(table))
        table.update(dict.fromkeys(table, response.dispatch))


def _clean_environment(undo: ExitStack, region_name: str) -> None:
    """Give clients credentials and a region if there are none, and no other address than AWS's own."""
    changes: dict[str, str] = dict(_ENDPOINTS)
    if not any(os.environ.get(name) for name in _CREDENTIALS):
        changes |= dict.fromkeys(_CREDENTIALS, "local")
    if not any(os.environ.get(name) for name in _REGIONS):
        changes["AWS_DEFAULT_REGION"] = region_name
    # moto sets the credentials too; they are remembered here so that an empty value comes back as it was.
    before = {name: os.environ.get(name) for name in {*changes, *_CREDENTIALS}}
    undo.callback(_restore, before)
    os.environ.update(changes)


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _stop(mock: Any) -> None:
    for name in _CREDENTIALS:
        os.environ.setdefault(name, "local")  # moto deletes these and trips over one that is gone already
    mock.stop()
