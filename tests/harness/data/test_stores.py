"""A memory is built, seeded, waited for, dumped and dropped: the same calls, emulated here and in AWS."""

import json

import boto3
import pytest

from harness import cli
from harness.data.datasets import DATA, load
from harness.data.stores import StoreFile, estimate, read_store_file
from strands_gated_memory.testing import local_agentcore

CONVERSATIONS = DATA / "conversations.json"


@pytest.fixture
def store(tmp_path, monkeypatch, capsys):
    """Run one step in a folder of its own; returns its exit status, what it said and what it complained about."""
    monkeypatch.chdir(tmp_path)

    def call(step, *arguments, where="--local"):
        status = cli.main(["store", step, where, *map(str, arguments)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


def test_a_local_store_lives_through_all_its_steps(store, tmp_path):
    assert store("build")[0] == 0
    status, said, _ = store("seed")
    assert status == 0
    assert "the emulation extracts nothing" in " ".join(said.split())
    status, said, _ = store("wait")
    assert (status, "15 records are there" in said) == (0, True)
    assert store("dump", "--to", tmp_path / "fixture.json")[0] == 0
    assert store("drop")[0] == 0
    assert not (tmp_path / "store-local.json").exists()

    texts = {record["text"] for record in json.loads((tmp_path / "fixture.json").read_text())["records"]}
    assert texts == {record.text for record in read_store_file(CONVERSATIONS).records}


def test_a_dump_can_be_stored_again(store, tmp_path):
    fixture = {
        "actor_id": "someone",
        "namespaces": {"facts": "/facts/{actorId}"},
        "records": [{"id": "a", "namespace": "facts", "strategy": "SEMANTIC", "text": "The user swims."}],
    }
    (tmp_path / "mine.json").write_text(json.dumps(fixture))
    store("build", "--data", tmp_path / "mine.json")
    store("seed", "--records", "--data", tmp_path / "mine.json")
    store("dump", "--to", tmp_path / "dumped.json")

    again = read_store_file(tmp_path / "dumped.json")
    assert [(record.text, record.namespace) for record in again.records] == [("The user swims.", "facts")]
    assert again.template("facts") == "/facts/{actorId}/"


def test_seeding_twice_writes_once(store):
    store("build")
    store("seed")
    _, said, _ = store("seed")

    assert "wrote 0 conversations as events; 5 were there" in " ".join(said.split())
    assert "15 records are there" in store("wait")[1]


def test_in_aws_the_same_calls_are_made(store, tmp_path):
    with local_agentcore() as aws:
        assert store("build", "--yes", where="--aws")[0] == 0
        memory_id = json.loads((tmp_path / "store-aws.json").read_text())["memory_id"]
        memory = boto3.client("bedrock-agentcore-control").get_memory(memoryId=memory_id)["memory"]
        assert {(one["type"], *one["namespaceTemplates"]) for one in memory["strategies"]} == {
            ("SEMANTIC", "/facts/{actorId}/"),
            ("USER_PREFERENCE", "/preferences/{actorId}/"),
        }
        status, said, _ = store("seed", "--yes", where="--aws")
        assert (status, "about $" in said) == (0, True)
        events = aws.calls.of("CreateEvent")
        assert [call.parameters["sessionId"] for call in events] == [
            "seed-cycling", "seed-kitchen", "seed-garden", "seed-portuguese", "seed-work",
        ]  # fmt: skip
        assert not aws.calls.of("BatchCreateMemoryRecords")  # there the service extracts
        status, _, complaint = store("wait", "--yes", "--timeout-s", 0.2, "--poll-s", 0.05, where="--aws")
        assert (status, "there are 0 records" in complaint) == (1, True)
        assert store("drop", "--yes", where="--aws")[0] == 0
        assert all(
            one["id"] != memory_id for one in boto3.client("bedrock-agentcore-control").list_memories()["memories"]
        )


@pytest.mark.parametrize("step", ["build", "seed", "wait", "dump", "drop"])
def test_without_a_yes_and_with_nobody_to_ask_nothing_reaches_aws(store, step):
    with local_agentcore() as aws:
        status, said, complaint = store(step, where="--aws")

        assert status == 2
        assert "--yes" in complaint
        assert "in AWS:" in said
        assert len(aws.calls) == 0


def test_a_failure_of_the_service_is_told(store):
    with local_agentcore() as aws:
        store("build", "--yes", where="--aws")
        aws.fail("CreateEvent", "AccessDeniedException")
        status, _, complaint = store("seed", "--yes", where="--aws")

    assert status == 1
    assert "AccessDenied" in complaint


def test_a_seed_that_broke_off_goes_on_where_it_was(store, tmp_path):
    with local_agentcore() as aws:
        store("build", "--yes", where="--aws")
        aws.fail("CreateEvent", "ValidationException", times=1)
        assert store("seed", "--yes", where="--aws")[0] == 1
        assert store("seed", "--yes", where="--aws")[0] == 0
        assert len(json.loads((tmp_path / "store-aws.json").read_text())["seeded"]) == 5


@pytest.mark.parametrize("step", ["seed", "wait", "dump", "drop"])
def test_before_it_is_built_a_step_says_what_comes_first(store, step):
    status, _, complaint = store(step)

    assert status == 2
    assert "store build" in complaint


def test_a_second_build_does_not_lose_the_first(store):
    store("build")
    status, _, complaint = store("build")

    assert status == 2
    assert "store drop" in complaint


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"actor_id": "not an id"}, "actor_id"),
        ({"namespaces": {}}, "namespaces"),
        ({"records": [{"id": "a", "namespace": "moods", "text": "x"}]}, "'moods'"),
        ({"strategies": {"facts": "GUESS"}}, "strategies.facts"),
        ({"namespaces": {"moods": "/moods/{actorId}/"}, "records": []}, "'moods' has no strategy"),
    ],
)
def test_a_wrong_data_file_is_named_with_the_field(store, tmp_path, change, where):
    document = {"actor_id": "a", "namespaces": {"facts": "/facts/{actorId}/"}, "records": []} | change
    (tmp_path / "mine.json").write_text(json.dumps(document))
    status, _, complaint = store("build", "--data", tmp_path / "mine.json")

    assert status == 2
    assert "mine.json" in complaint
    assert where in complaint


def test_estimates_by_hand():
    file = StoreFile(
        actor_id="a",
        namespaces={"facts": "/facts/{actorId}/"},
        records=[{"id": str(at), "namespace": "facts", "text": "x"} for at in range(1000)],
    )

    assert "1000 records: about $0.75000 a month" in estimate("seed", file, records=True)[0]


def test_the_persona_can_be_stored_too():
    file = read_store_file(DATA / "persona.json")

    assert {key: file.strategy(key) for key in file.namespaces} == {
        "facts": "SEMANTIC",
        "preferences": "USER_PREFERENCE",
    }
    assert len(load(CONVERSATIONS).seed_conversations) == 5
