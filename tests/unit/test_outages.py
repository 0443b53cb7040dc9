"""Which runs wait for an endpoint that is gone, and what that costs them."""

from __future__ import annotations

import time

from depthkit.trials.budget import Purse
from depthkit.trials.outages import Outages


def test_after_the_pause_one_run_goes_first_and_the_others_follow_its_first_answer() -> None:
    outages = Outages((1.0, 10))
    assert not outages.failed("m", time.monotonic())
    assert not outages.may_start("m", [])
    assert (set(outages.waiting()), outages.on_trial()) == ({"m"}, set())
    time.sleep(1.01)
    assert (outages.waiting(), outages.on_trial()) == ({}, {"m"})
    assert outages.may_start("m", [])
    first = Purse()
    assert not outages.may_start("m", [first])
    first.answered = time.monotonic()
    assert outages.may_start("m", [first])
    assert outages.on_trial() == set()


def test_an_answer_from_before_the_outage_says_nothing() -> None:
    outages = Outages((0.05, 10))
    old = Purse(outlook="answered", answered=time.monotonic())
    time.sleep(0.01)
    outages.failed("m", time.monotonic())
    time.sleep(0.06)
    assert not outages.may_start("m", [old])
    outages.answered("m", old.answered)  # it ends
    assert outages.on_trial() == {"m"}


def test_an_outage_costs_no_try_but_a_request_that_always_fails_does() -> None:
    outages = Outages((0, 0, 0))
    assert outages.costs_a_try("run", Purse(answered=1.0))
    assert [outages.costs_a_try("run", Purse()) for _ in range(5)] == [False] * 3 + [True] * 2
    assert not outages.costs_a_try("another", Purse())
