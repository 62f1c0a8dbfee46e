"""Each third party is known to one file, and loaded at the first use of it."""

import ast
from pathlib import Path

import strands_gated_memory

DECIDERS = Path(strands_gated_memory.__file__).parent / "deciders"
KNOWN_TO = {
    "httpx": {"transports/http.py"},
    "boto3": {"transports/aws.py"},
    "botocore": {"transports/aws.py"},
    "strands_decider": {"transports/local.py"},
    "torch": {"transports/local.py"},
    "strands": {"llm.py"},
}


def test_each_third_party_is_known_to_one_file_and_loaded_late():
    found = {name: set() for name in KNOWN_TO}
    early = set()
    for path in DECIDERS.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            for name in {one.split(".")[0] for one in names} & set(KNOWN_TO):
                found[name].add(str(path.relative_to(DECIDERS)))
                early |= {(path.name, name)} if node in tree.body else set()

    assert found == KNOWN_TO
    assert early == set()
