"""The figures: worked by hand, and beside an independent library."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from harness.measuring import metrics as m

# Scores and labels of one worked example: yes 0.9, 0.6, 0.4; no 0.7, 0.2, 0.1.
S = [0.9, 0.7, 0.6, 0.4, 0.2, 0.1]
Y = [True, False, True, True, False, False]


def test_the_worked_example():
    assert m.auc(S, Y) == pytest.approx(7 / 9)  # 0.9 beats 3 no, 0.6 and 0.4 beat 2 each
    assert m.precision_at_relevant(S, Y) == pytest.approx(2 / 3)  # best three: yes, no, yes
    assert m.margin(S, Y) == pytest.approx(0.4 - 0.7)
    assert m.recall_at(S, Y, 0.5) == pytest.approx(2 / 3)
    assert m.skip_at(S, Y, 0.5) == pytest.approx(2 / 3)
    assert m.skip_rate(S, Y, 1.0) == pytest.approx(2 / 3)
    assert m.skip_rate(S, Y, 0.6) == pytest.approx(2 / 3)
    assert m.skip_rate(S, Y, 0.3) == pytest.approx(1.0)


def test_the_best_cut_is_midway_between_the_scores_that_it_parts():
    cut = m.best_cut(S, Y)

    assert cut.accuracy == pytest.approx(5 / 6)
    assert cut.at == pytest.approx(0.3)  # between 0.4 and 0.2: one no, 0.7, on the wrong side
    assert ((np.array(S) >= cut.at) == np.array(Y)).mean() == cut.accuracy


def test_of_equally_good_cuts_the_lowest_is_taken():
    assert m.best_cut([0.1, 0.2, 0.3, 0.4], [False, True, False, True]).at == pytest.approx(0.15)


@pytest.mark.parametrize(("recall", "cut"), [(1.0, 0.3), (0.6, 0.5), (0.3, 0.8)])
def test_the_cut_for_a_recall_keeps_that_share_and_no_more(recall, cut):
    assert m.cut_for_recall(S, Y, recall) == pytest.approx(cut)


def test_precision_breaks_ties_against_us():
    assert m.precision_at_relevant([0.5, 0.5, 0.5], [True, False, False]) == 0.0
    assert m.precision_at_relevant([0.5, 0.5, 0.5], [True, True, False]) == 0.5


def test_calibration_error_worked_by_hand():
    # Bin 0.0-0.1: P 0.05, observed 0 of 2. Bin 0.9-1.0: mean P 0.95, observed 1 of 2.
    assert m.calibration_error([0.05, 0.05, 0.95, 0.95], [False, False, True, False]) == pytest.approx(
        0.5 * 0.05 + 0.5 * 0.45
    )
    assert [one.count for one in m.reliability([0.0, 0.1, 1.0], [False, False, True])] == [2, 1]


@pytest.mark.parametrize(
    ("scores", "labels"), [([], []), ([0.5], [True]), ([0.5], [False]), ([0.2, 0.3], [False, False])]
)
def test_where_there_is_nothing_to_measure_there_is_no_figure(scores, labels):
    assert m.auc(scores, labels) is None
    assert m.margin(scores, labels) is None
    assert m.best_cut(scores, labels) is None
    assert m.skip_rate(scores, labels, 1.0) is None
    assert m.precision_at_relevant(scores, labels) in (None, 1.0)


def test_equal_scores_have_an_auc_of_a_half_and_no_cut_that_parts_them():
    scores, labels = [0.4] * 4, [True, False, True, False]

    assert m.auc(scores, labels) == 0.5
    assert m.best_cut(scores, labels).accuracy == 0.5
    assert m.skip_rate(scores, labels, 1.0) == 0.0


def test_scores_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        m.auc([float("nan"), 0.5], [True, False])
    with pytest.raises(ValueError, match="2 scores and 1 labels"):
        m.auc([0.1, 0.5], [True])


def _random_cases():
    rng = np.random.default_rng(7)
    for _ in range(60):
        size = int(rng.integers(2, 25))
        scores = rng.integers(0, 6, size) / 5 if rng.random() < 0.6 else rng.random(size)  # mostly with ties
        labels = rng.random(size) < rng.uniform(0.1, 0.9)
        if labels.any() and not labels.all():
            yield scores, labels


def _ranked(scores, labels, relevant_first: bool):
    """Judgements and run for ir_measures, ties broken as asked: trec_eval puts the later document id first."""
    yes, no = ("z", "a") if relevant_first else ("a", "z")
    names = [f"{yes if label else no}{at:03}" for at, label in enumerate(labels)]
    judged = [ir_measures.Qrel("q", name, int(label)) for name, label in zip(names, labels, strict=True)]
    found = [ir_measures.ScoredDoc("q", name, float(score)) for name, score in zip(names, scores, strict=True)]
    return judged, found


def test_precision_agrees_with_trec_eval_on_random_data_with_ties():
    for scores, labels in _random_cases():
        k = int(labels.sum())
        judged, found = _ranked(scores, labels, relevant_first=False)
        measure = ir_measures.P @ k

        assert m.precision_at_relevant(scores, labels) == pytest.approx(
            ir_measures.calc_aggregate([measure], judged, found)[measure]
        )


def test_auc_agrees_with_ir_measures_on_random_data_with_ties():
    accuracy = ir_measures.Accuracy
    for scores, labels in _random_cases():
        # P(relevant before irrelevant) in the two extreme orders of ties: half of each is the AUC.
        both = [
            ir_measures.calc_aggregate([accuracy], *_reordered(scores, labels, relevant_first))[accuracy]
            for relevant_first in (True, False)
        ]

        assert m.auc(scores, labels) == pytest.approx(sum(both) / 2)


def _reordered(scores, labels, relevant_first: bool):
    order = np.lexsort((~labels if relevant_first else labels, -scores))
    judged = [ir_measures.Qrel("q", f"d{at}", int(label)) for at, label in enumerate(labels)]
    found = [ir_measures.ScoredDoc("q", f"d{at}", float(len(order) - place)) for place, at in enumerate(order)]
    return judged, found


def test_the_bootstraps_auc_of_each_row_is_scikit_learns():
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 8, (20, 12)) / 7
    labels = rng.random((20, 12)) < 0.5
    rows = m.auc_rows(scores, labels)

    for row, s, y in zip(rows, scores, labels, strict=True):
        assert row == pytest.approx(roc_auc_score(y, s))
    assert np.isnan(m.auc_rows(scores[:1], np.ones((1, 12), bool))).all()


def test_an_interval_holds_its_figure_and_is_the_same_for_the_same_seed():
    values = np.random.default_rng(0).normal(0.3, 0.1, 50)
    one, again, other = (m.interval(m.mean_rows, values, seed=seed) for seed in (1, 1, 2))

    assert one.low < values.mean() < one.high
    assert one == again != other
    assert one.high - one.low == pytest.approx(2 * 1.96 * values.std() / np.sqrt(50), rel=0.2)


def test_resamples_without_the_figure_are_left_out_and_too_few_give_no_interval():
    few = m.interval(m.auc_rows, [0.1, 0.2, 0.3, 0.9], [False, False, False, True])

    assert 500 <= few.usable < 1000
    assert m.interval(m.mean_rows, [0.5]) == m.NO_INTERVAL
    assert m.interval(m.auc_rows, [0.1] * 9, [False] * 9).low is None


def test_a_held_out_query_has_no_say_in_its_own_cut():
    # Of two queries, each is perfectly split by itself, at levels that do not suit the other.
    scores = [0.9, 0.8, 0.2, 0.1]
    labels = [True, False, True, False]
    held = m.held_out(scores, labels, lambda s, y: m.best_cut(s, y).at, groups=[0, 0, 1, 1])

    assert held.tolist() == [True, True, False, False]


def test_there_is_nothing_held_out_of_one_group_or_one_item_of_a_kind():
    assert m.held_out([0.1, 0.9], [False, True], lambda s, y: 0.5, groups=[1, 1]) is None
    assert m.held_out([0.1, 0.2, 0.9], [False, False, True], lambda s, y: 0.5) is None


def test_an_interval_holds_the_rate_and_narrows_with_more_groups():
    few = m.rate_interval([1, 0, 1, 1], [1, 1, 1, 1], seed=0)
    many = m.rate_interval([1, 0, 1, 1] * 25, [1] * 100, seed=0)

    assert few.low <= 0.75 <= few.high
    assert many.low <= 0.75 <= many.high
    assert many.high - many.low < few.high - few.low
    assert m.rate_interval([1, 0, 1, 1], [1, 1, 1, 1], seed=0) == few


@pytest.mark.parametrize(("good", "total"), [([1, 1], [1, 1]), ([0, 0], [1, 1]), ([1], [2]), ([], [])])
def test_where_all_agree_there_is_no_interval(good, total):
    assert m.rate_interval(good, total, seed=0) == m.NO_INTERVAL
