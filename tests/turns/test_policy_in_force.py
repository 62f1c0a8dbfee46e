"""What `print(manager.policy)` says is what the manager's turns do."""

import pytest
from turn_builders import AS_SHIPPED, last_block

from strands_gated_memory.core.questions import Noul, Thresholds
from strands_gated_memory.embedded.decider import EmbeddedDecider


class Measured:
    """A decision model that ships its cuts; every probability is 0.3."""

    model_id = "measured-1"
    thresholds = Thresholds(gate=0.1, router=0.1, validator=0.25, relative=0.5)
    deadline_s = 30.0

    def decide(self, state, questions):
        return {name: Noul(0.3) for name in questions}


@pytest.mark.parametrize(
    ("policy", "said", "kept"),
    [
        ({}, "threshold=0.25 (measured-1)", True),
        ({"validator": {"threshold": 0.5}}, "threshold=0.5 (policy)", False),
        ({"validator": {"threshold": 0.3}}, "threshold=0.3 (policy)", True),
    ],
    ids=["its own", "the policy's", "the policy's, equal"],
)
def test_a_record_is_kept_by_the_cut_that_is_shown(bench, policy, said, kept):
    bench.remember("Likes tea")
    manager = bench.manager(decider=Measured(), policy=policy, waits=AS_SHIPPED)
    agent = bench.agent(manager)

    agent("What do I drink?")

    (validator,) = [line for line in str(manager.policy).splitlines() if line.startswith("  validator")]
    assert said in validator
    assert "deadline_s=30 (measured-1)" in str(manager.policy)
    assert last_block(agent) == (["Likes tea"] if kept else [])
    assert manager.last_recall.trace.thresholds["validator"] == manager.cuts_in_force().validator.value


def test_the_policy_of_a_manager_equals_the_one_given_and_can_be_used_again(bench):
    """What is in force here is not carried to another manager, nor into a copy."""
    manager = bench.manager(decider=Measured(), policy={"gate": {"threshold": 0.2}})

    assert manager.policy == bench.manager(policy={"gate": {"threshold": 0.2}}).policy
    assert "0.25 (measured-1)" in str(manager.policy)
    assert "0.2 (default)" in str(bench.manager(decider=None, policy=manager.policy).policy)
    assert "measured-1" not in str(manager.policy.model_copy(update={"deadline_s": 5.0}))


def test_the_embedded_models_cuts_are_shown(bench):
    cuts = bench.manager(decider="embedded").cuts_in_force()

    assert cuts.thresholds() == EmbeddedDecider().thresholds
    assert {cuts.gate.source, cuts.router.source, cuts.validator.source, cuts.relative.source} == {"decider"}
    assert cuts.gate.named == EmbeddedDecider().model_id
