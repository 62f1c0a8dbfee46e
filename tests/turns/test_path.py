"""Which files of ours one gated turn passes through: what a reader has to open to follow it."""

import sys
import threading
from collections import defaultdict
from pathlib import Path

from turn_builders import FACTS, PREFERENCES, last_block, yes

import strands_gated_memory

MOST_FILES = 36
"""It may become fewer; 14 is the goal."""

PACKAGE = Path(strands_gated_memory.__file__).parent


def test_a_gated_turn_passes_through_few_files(bench):
    """Run with `-s` to see them; the bound keeps the way of a turn from growing back."""
    bench.remember("Likes tea").remember("Window seat", namespace=PREFERENCES)
    agent = bench.agent(bench.manager(decider=yes, namespaces=(FACTS, PREFERENCES)))
    agent("What do I drink?")
    passed = defaultdict(set)

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            file = Path(frame.f_code.co_filename).relative_to(PACKAGE)
            if file.parts[0] != "testing":
                passed[str(file)].add(frame.f_code.co_name)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        agent("Where do I sit?")
    finally:
        sys.setprofile(None)
        threading.setprofile(None)

    print(f"\n{len(passed)} files, {sum(map(len, passed.values()))} functions")
    for file in sorted(passed):
        print(f"  {file}: {', '.join(sorted(passed[file]))}")
    assert len(last_block(agent)) == 2
    assert len(passed) <= MOST_FILES
