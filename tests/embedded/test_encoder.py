from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import threading

import numpy as np
import pytest

from strands_gated_memory.embedded import encoder as module
from strands_gated_memory.embedded.encoder import BATCH_TOKENS, Encoder, default_encoder

WORDS = (
    "the user prefers oat milk in Porto with Ana on Friday and never eats peanuts 17 € invoice? "
    "def merge(a, b): 😀 naïve Søren [PAD] [CLS] x=3 café allergic reschedule Kraków"
).split()


def mixed_texts(count: int, seed: int = 7) -> list[str]:
    chance = random.Random(seed)
    lengths = [0, 1, 3, 9, 17, 40, 120, 400]
    return [" ".join(chance.choices(WORDS, k=chance.choice(lengths))) for _ in range(count)]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(cache_entries=0)


def test_a_text_has_the_same_vector_alone_and_in_any_batch(encoder: Encoder) -> None:
    """No cosine moves by more than 1e-4, whatever shares the batch."""
    texts = mixed_texts(60)
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    wide = Encoder(cache_entries=0, batch_tokens=10_000)

    for batch in (encoder.encode(texts), encoder.encode(texts[::-1])[::-1], wide.encode(texts)):
        assert np.abs(batch @ alone.T - alone @ alone.T).max() <= 1e-4
        assert np.abs((batch * alone).sum(axis=1) - 1).max() <= 1e-4


def test_padding_alone_does_not_move_a_vector(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short text padded to the length of a long one keeps its vector."""
    monkeypatch.setattr(module, "PADDING_TOKENS", 10_000)
    short, long = "Dinner ideas?", "The user likes soup. " * 60

    padded = encoder.encode([short, long])

    assert np.abs(padded[0] - encoder.encode([short])[0]).max() <= 1e-4


def test_encoding_is_deterministic(encoder: Encoder) -> None:
    """Twice the same texts, twice the same bytes."""
    texts = mixed_texts(20, seed=1)

    assert encoder.encode(texts).tobytes() == encoder.encode(texts).tobytes()


def test_rows_are_unit_vectors_of_float32(encoder: Encoder) -> None:
    """Every row has norm 1, the empty text's too."""
    vectors = encoder.encode(["", "hi", "😀😀", "x" * 20_000, "\ud800"])

    assert vectors.dtype == np.float32
    assert vectors.shape == (5, encoder.width)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(5), abs=1e-5)


def test_no_texts_give_no_rows(encoder: Encoder) -> None:
    """An empty call is not an error."""
    assert encoder.encode([]).shape == (0, encoder.width)


def test_a_string_is_refused(encoder: Encoder) -> None:
    """One str would be encoded character by character."""
    with pytest.raises(TypeError, match=r"encode\(\[text\]\)"):
        encoder.encode("hello")


def test_only_the_first_tokens_of_a_long_text_count(encoder: Encoder) -> None:
    """What lies beyond the limit changes nothing."""
    head = "the user likes soup " * 100

    assert np.array_equal(encoder.encode([head + "peanuts"]), encoder.encode([head + "walnuts and more " * 500]))


def test_similar_texts_are_nearer(encoder: Encoder) -> None:
    """The vectors mean something."""
    ask, near, far = encoder.encode(
        ["What should I cook tonight?", "The user is vegetarian and cooks at home.", "The user's car is a Skoda."]
    )

    assert ask @ near > ask @ far + 0.1


def test_a_run_is_bounded_in_tokens() -> None:
    """No batch exceeds the limit once padded, unless it is one text."""
    lengths = [3, 250, 250, 250, 17, 17, 17, 80] * 20

    batches = list(module._batches(lengths, BATCH_TOKENS))

    assert sorted(at for batch in batches for at in batch) == list(range(len(lengths)))
    assert all(len(batch) * max(lengths[at] for at in batch) <= BATCH_TOKENS or len(batch) == 1 for batch in batches)


def test_the_cache_is_bounded_and_forgets_the_oldest() -> None:
    """Beyond its limit the least recently used text goes."""
    small = Encoder(cache_entries=3)

    small.encode(["a", "b", "c"])
    small.encode(["a"])
    small.encode(["d"])

    assert len(small.cache) == 3
    assert set(small.cache.get([_key("a"), _key("b"), _key("d")])) == {_key("a"), _key("d")}


def test_more_texts_than_the_cache_holds_in_one_call() -> None:
    """The call still gets all its rows."""
    small = Encoder(cache_entries=2)

    assert small.encode([f"text {n}" for n in range(9)] + ["text 1"]).shape[0] == 10
    assert len(small.cache) == 2


def test_a_cached_text_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second call asks the model nothing, and changing a result changes no later one."""
    cached = Encoder()
    first = cached.encode(["hello", "hello", "world"])
    kept = first.copy()
    first[:] = 0
    monkeypatch.setattr(Encoder, "_run", lambda *_: pytest.fail("the model ran"))

    assert np.array_equal(cached.encode(["hello", "hello", "world"]), kept)


def test_threads_get_the_answers_of_one_thread() -> None:
    """Eight threads, one encoder that is not loaded yet, the same vectors."""
    shared = Encoder(cache_entries=16)
    texts = mixed_texts(24, seed=3)
    expected = Encoder(cache_entries=0).encode(texts)
    found: dict[int, np.ndarray] = {}

    def work(number: int) -> None:
        order = random.Random(number).sample(range(len(texts)), len(texts))
        rows = np.empty_like(expected)
        for start in range(0, len(order), 5):
            part = order[start : start + 5]
            rows[part] = shared.encode([texts[at] for at in part])
        found[number] = rows

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 8
    assert max(np.abs(rows - expected).max() for rows in found.values()) <= 1e-5


def test_the_default_encoder_is_one_per_process() -> None:
    """All callers share it and its cache."""
    assert default_encoder() is default_encoder()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_child_encodes_and_exits() -> None:
    """A child forked after loading, while a lock is held, loads its own session and ends by itself."""
    parent = default_encoder()
    expected = hashlib.sha256(np.round(parent.encode(["hello from the parent"]), 4).tobytes()).hexdigest()
    read, write = os.pipe()
    parent._lock.acquire()
    module._default_lock.acquire()
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        try:
            vector = np.round(default_encoder().encode(["hello from the parent"]), 4)
            os.write(write, hashlib.sha256(vector.tobytes()).hexdigest().encode())
        finally:
            os._exit(0)
    parent._lock.release()
    module._default_lock.release()
    os.close(write)
    with os.fdopen(read) as pipe:
        answer = pipe.read()

    assert os.waitpid(child, 0)[1] == 0
    assert answer == expected


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_ends_by_itself() -> None:
    """A child that leaves through the interpreter's own exit neither hangs nor aborts."""
    done = run_python(
        "import os, sys\n"
        "from strands_gated_memory.embedded.encoder import default_encoder\n"
        "default_encoder().encode(['a'])\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    default_encoder().encode(['b'])\n"
        "    sys.exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )

    assert done.stdout.strip() == "7", done.stderr


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.3])
def test_a_process_that_ends_while_it_warms_ends_cleanly(seconds: float) -> None:
    """A daemon thread inside the runtime does not abort the process."""
    done = run_python(
        "import threading, time\n"
        "from strands_gated_memory.embedded.decider import EmbeddedDecider\n"
        f"threading.Thread(target=EmbeddedDecider().warm, daemon=True).start(); time.sleep({seconds})\n"
    )

    assert done.returncode == 0, done.stderr


def test_the_runtime_sends_no_telemetry() -> None:
    """onnxruntime is told so before it starts."""
    done = run_python(
        "import os\n"
        "from strands_gated_memory.embedded.encoder import Encoder\n"
        "Encoder().load()\n"
        "print(os.environ['ORT_DISABLE_TELEMETRY'])\n"
    )

    assert done.stdout.strip() == "1", done.stderr


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
