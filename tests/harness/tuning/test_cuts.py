"""Cuts and heads from labelled probabilities: by hand, by brute force, and across folds."""

import math

import numpy as np
import pytest

from harness.errors import HarnessError
from harness.tuning.cuts import Cut, Goal, Labelled, choose, figures, folds, intervals, judged_by, with_head


def judged(p, must, waste=None, groups=None, features=None):
    must = np.array(must, bool)
    waste = ~must if waste is None else np.array(waste, bool)
    groups = np.arange(len(p)) if groups is None else np.array(groups)
    return Labelled(np.array(p, float), must, waste, groups, features)


@pytest.mark.parametrize(
    ("recall", "cut"),
    [
        (1.0, 0.25),  # halfway from the lowest that is needed, 0.3, to the next below, 0.2
        (0.67, 0.25),
        (0.66, 0.55),  # one of three may be missed
        (0.1, 0.85),
    ],
)
def test_the_highest_cut_that_keeps_what_is_needed(recall, cut):
    labels = judged([0.9, 0.8, 0.3, 0.2], [1, 1, 1, 0])

    assert choose(labels, Goal(min_recall=recall)).threshold == pytest.approx(cut)


@pytest.mark.parametrize(("ratio", "cut"), [(2.0, 0.7), (10.0, 0.05)])
def test_what_a_miss_costs_moves_the_cut(ratio, cut):
    # To keep the one at 0.1, four that are not needed are kept too.
    labels = judged([0.9, 0.1, 0.5, 0.4, 0.3, 0.2], [1, 1, 0, 0, 0, 0])

    assert choose(labels, Goal(cost_ratio=ratio)).threshold == pytest.approx(cut)


def test_among_cuts_that_cost_the_same_the_lowest_is_taken():
    labels = judged([0.9, 0.5], [1, 0])

    assert choose(judged([0.9, 0.5], [1, 0]), Goal(cost_ratio=1.0)).keeps(labels).tolist() == [True, False]
    # Missing the one costs as much as keeping the other: keep both.
    assert choose(judged([0.4, 0.5], [1, 0]), Goal(cost_ratio=1.0)).keeps(judged([0.4, 0.5], [1, 0])).all()


def test_a_query_on_another_level_needs_the_share_of_its_best():
    labels = judged([0.9, 0.4, 0.2, 0.05], [1, 0, 1, 0], groups=[1, 1, 2, 2])

    absolute = choose(labels, Goal(min_recall=1.0), "threshold")
    hybrid = choose(labels, Goal(min_recall=1.0), "hybrid")
    ranking = choose(labels, Goal(min_recall=1.0), "ranking")

    assert absolute.keeps(labels).tolist() == [True, True, True, False]
    assert hybrid.keeps(labels).tolist() == ranking.keeps(labels).tolist() == [True, False, True, False]
    assert ranking.threshold is None
    assert absolute.relative is None


def test_what_is_merely_useful_counts_neither_way():
    labels = judged([0.9, 0.5, 0.1], [1, 0, 0], waste=[0, 0, 1])

    assert choose(labels, Goal(min_recall=1.0)).keeps(labels)[0]
    assert figures(labels, np.array([True, True, False])) | {"brier": None} == {
        "recall": 1.0,
        "avoided": 1.0,
        "auc": 1.0,
        "brier": None,
    }


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("goal", [Goal(min_recall=0.9), Goal(cost_ratio=4.0)])
def test_a_hybrid_choice_is_as_good_as_trying_everything(seed, goal):
    random = np.random.default_rng(seed)
    p = np.round(random.random(40), 2)
    must = random.random(40) < p
    groups = random.integers(0, 6, 40)
    if not must.any() or must.all():
        pytest.skip("one kind only")
    labels = judged(p, must, groups=groups)
    best = np.array([p[groups == group].max() for group in groups])

    def cost(keeps):
        missed, kept = (must & ~keeps).sum(), (~must & keeps).sum()
        if goal.min_recall is not None:
            return kept if missed <= (1 - goal.min_recall) * must.sum() + 1e-9 else math.inf
        return goal.cost_ratio * missed + kept

    every = [
        cost((p >= threshold) & (p >= relative * best))
        for threshold in [0.0, *np.unique(p)]
        for relative in [0.0, *np.unique(p / best)]
    ]
    assert cost(choose(labels, goal, "hybrid").keeps(labels)) == min(every)


@pytest.mark.parametrize("must", [[1, 1], [0, 0]])
def test_labels_of_one_kind_make_no_cut(must):
    with pytest.raises(HarnessError, match="both kinds"):
        choose(judged([0.9, 0.5], must), Goal(min_recall=1.0))


def test_a_heads_cut_is_chosen_on_what_it_has_not_seen():
    """On noise a head is sure of its own labels and knows nothing of others: its cut must not be the former's."""
    random = np.random.default_rng(0)
    n, width = 120, 200
    features = np.concatenate([np.zeros((n, 1)), random.normal(size=(n, width))], axis=1)
    labels = judged(np.full(n, 0.5), random.random(n) < 0.5, groups=np.arange(n) // 2, features=features)

    head, fair = with_head(labels, inputs=("noise",), width=width, seed=0)
    own = judged_by(labels, head)

    assert figures(own, labels.must)["auc"] > 0.75
    assert abs(figures(fair, labels.must)["auc"] - 0.5) < 0.2
    assert choose(fair, Goal(min_recall=1.0)).threshold < choose(own, Goal(min_recall=1.0)).threshold


def test_a_group_is_never_on_both_sides_of_a_fold():
    labels = judged(np.linspace(0.1, 0.9, 40), [1, 0] * 20, groups=np.arange(40) // 4)
    splits = list(folds(labels, 0))

    assert len(splits) == 5
    assert sorted(at for _, test in splits for at in test) == list(range(40))
    for train, test in splits:
        assert not set(labels.groups[train]) & set(labels.groups[test])


def test_too_few_groups_make_no_folds():
    assert list(folds(judged([0.9, 0.8, 0.1], [1, 1, 0], groups=[1, 1, 2]), 0)) == []


def test_intervals_are_of_recall_and_of_what_is_avoided():
    labels = judged([0.9, 0.8, 0.3, 0.2, 0.6, 0.1], [1, 1, 1, 0, 0, 0])
    found = intervals(labels, Cut(0.5).keeps(labels), seed=0)

    assert found["recall"].low <= 2 / 3 <= found["recall"].high
    assert found["avoided"].low <= 2 / 3 <= found["avoided"].high
