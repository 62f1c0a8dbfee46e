"""What the package promises as a whole: names, imports, versions, size of start-up."""

from __future__ import annotations

import ast
import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

import strands_gated_memory as g
from strands_gated_memory import _versions
from strands_gated_memory.deciders.resolve import resolve_decider
from strands_gated_memory.errors import ConfigurationError

PACKAGE = Path(g.__file__).parent


def test_every_exported_name_exists_and_the_list_is_sorted():
    assert g.__all__ == sorted(g.__all__)
    assert all(hasattr(g, name) for name in g.__all__)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("Turn", ["text", "previous"]),
        ("Record", ["text", "namespace", "score", "record_id", "created_at", "metadata"]),
        ("GateDecision", ["open", "probability", "namespaces", "selected"]),
        ("Judgement", ["record", "probability", "keep", "reason"]),
        ("Recall", ["records", "block", "dropped", "trace"]),
        ("Dropped", ["record", "reason"]),
    ],
)
def test_the_values_of_a_turn_are_frozen_and_positional_in_this_order(name, fields):
    cls = getattr(g, name)

    assert [field.name for field in dataclasses.fields(cls)][: len(fields)] == fields
    assert cls.__dataclass_params__.frozen


ALLOWED = {
    "core": {"pydantic"},
    "runtime": set(),
    "reporting": {"opentelemetry", "pydantic"},
    "deciders": {"boto3", "botocore", "httpx", "numpy", "pydantic", "strands", "strands_decider", "torch"},
    "embedded": {"numpy", "onnxruntime", "tokenizers"},
    "retrieval": {"botocore", "strands"},
    "injection": {"strands"},
}
SIBLINGS = {
    "core": {"core", "errors", "policy"},
    "runtime": {"core", "errors", "policy", "runtime"},
    "reporting": {"core", "errors", "policy", "reporting", "runtime"},
    "deciders": {"core", "errors", "deciders", "embedded", "fitted_file", "policy", "runtime"},
    "embedded": {"core", "errors", "embedded", "runtime"},
    "retrieval": {"core", "errors", "policy", "retrieval"},
    "injection": {"core", "errors", "injection", "policy"},
}


def imports(path: Path) -> set[tuple[str, bool]]:
    """Return (top name, whether it is this package's) of every import in a file, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {(alias.name.split(".")[0], False) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module.split(".")[0], False))
        elif isinstance(node, ast.ImportFrom):
            base = path.parent.relative_to(PACKAGE).parts
            base = base[: len(base) - (node.level - 1)]
            found.add(((*base, *(node.module or "").split("."))[0], True))
    return found


@pytest.mark.parametrize("part", ALLOWED)
def test_a_part_imports_only_what_is_below_it(part):
    outside = set()
    for path in (PACKAGE / part).rglob("*.py"):
        for name, ours in imports(path):
            allowed = SIBLINGS[part] if ours else ALLOWED[part] | sys.stdlib_module_names
            if name not in allowed:
                outside.add((str(path.relative_to(PACKAGE)), name))

    assert outside == set()


IMPURE = {
    "asyncio", "concurrent", "contextvars", "io", "logging", "multiprocessing", "os", "pathlib", "queue", "random",
    "select", "signal", "socket", "ssl", "subprocess", "tempfile", "threading", "time", "urllib", "weakref",
}  # fmt: skip


def impurities(source: str) -> set[str]:
    """Return what a module uses of threads, clocks, files and the system: its imports, and calls of `open`."""
    used = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            used |= {alias.name.split(".")[0] for alias in node.names} & IMPURE
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            used |= {node.module.split(".")[0]} & IMPURE
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("open", "__import__"):
            used.add(node.func.id)
    return used


def test_the_core_has_no_threads_clocks_or_files():
    found = {
        str(path.relative_to(PACKAGE)): used
        for path in (PACKAGE / "policy.py", *(PACKAGE / "core").rglob("*.py"))
        if (used := impurities(path.read_text(encoding="utf-8")))
    }

    assert found == {}


def test_importing_the_package_loads_no_model_runtime():
    code = (
        "import sys, warnings; warnings.simplefilter('ignore'); import strands_gated_memory; "
        "print([m for m in ('onnxruntime', 'tokenizers', 'torch', 'moto', 'rich') if m in sys.modules])"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert shown.strip() == "[]"


@pytest.mark.parametrize(
    ("package", "installed", "works"),
    [
        ("bedrock-agentcore", "1.23.0", False),
        ("bedrock-agentcore", "1.23.1", True),
        ("bedrock-agentcore", "1.99.0", True),
        ("bedrock-agentcore", "2.0.0", False),
        ("strands-agents", "1.61.9", False),
        ("strands-agents", "1.62.0", True),
        ("strands-agents", "2.0.0rc1", False),
    ],
)
def test_an_unsupported_sdk_is_a_clear_import_error(package, installed, works, monkeypatch):
    real = _versions.version
    monkeypatch.setattr(_versions, "version", lambda name: installed if name == package else real(name))

    if works:
        _versions.check_versions()
    else:
        with pytest.raises(ImportError, match=rf"needs {package}>=.*found {installed}.*pip install"):
            _versions.check_versions()


# Deciders by specification


def test_a_specification_may_be_nothing_a_function_or_a_decider():
    class Mine:
        def decide(self, state, questions):
            return {}

    mine = Mine()

    assert resolve_decider(None) is None
    assert resolve_decider(mine) is mine
    assert resolve_decider(lambda state, questions: {}).decide({"message": "", "previous": []}, {}) == {}


async def coroutine(state, questions):
    return {}


class Asynchronous:
    async def decide(self, state, questions):
        return {}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("embeded", "did you mean 'embedded'"),
        ("embedded:large", "no variants"),
        ("", "is empty"),
        (lambda state: {}, r"function\(state, questions\)"),
        (coroutine, "async"),
        (Asynchronous(), "async"),
        (Asynchronous, "instance"),
        (42, "must be"),
    ],
)
def test_a_wrong_specification_is_refused_with_the_fix(spec, says):
    with pytest.raises(ConfigurationError, match=says):
        resolve_decider(spec)
