"""Circuit breakers: a history of an endpoint, and limits of memory."""

from __future__ import annotations

from random import Random

from tamis.broker.delivery.breaker import BreakerOptions, CircuitBreakers

OPTIONS = BreakerOptions(failures=3, open_s=10.0, open_s_max=35.0, idle_s=100.0, endpoints_max=5)


def opened(at: float = 0.0) -> CircuitBreakers:
    breakers = CircuitBreakers(OPTIONS)
    for _ in range(3):
        assert breakers.admit("a", at)
        breakers.failed("a", at)
    return breakers


def test_only_failures_in_a_row_open_it() -> None:
    breakers = CircuitBreakers(OPTIONS)
    for failed in (1, 1, 0, 1, 1):
        if failed:
            breakers.failed("a", 0.0)
        else:
            breakers.succeeded("a")
    assert breakers.admit("a", 0.0)
    breakers.failed("a", 0.0)
    assert not breakers.admit("a", 0.0)
    assert breakers.admit("b", 0.0)


def test_it_is_open_for_twice_as_long_up_to_a_limit() -> None:
    breakers, now = opened(), 0.0
    for wait in (10.0, 20.0, 35.0, 35.0):
        assert not breakers.admit("a", now + wait - 0.1)
        now += wait
        assert breakers.admit("a", now)
        breakers.failed("a", now)


def test_one_probe_at_a_time_and_a_success_closes_it() -> None:
    breakers = opened()
    assert [breakers.admit("a", 10.0) for _ in range(3)] == [True, False, False]
    breakers.succeeded("a")
    assert all(breakers.admit("a", 10.0) for _ in range(3))
    assert len(breakers) == 0
    for _ in range(3):
        breakers.failed("a", 11.0)
    assert breakers.open_until("a") == 21.0  # from the beginning again


def test_a_probe_that_is_lost_does_not_block_the_endpoint_for_ever() -> None:
    breakers = opened()
    assert breakers.admit("a", 10.0)
    assert not breakers.admit("a", 19.9)
    assert breakers.admit("a", 20.0)


def test_attempts_from_before_do_not_keep_it_open_longer() -> None:
    breakers = opened()
    for _ in range(50):
        breakers.failed("a", 1.0)
    assert breakers.open_until("a") == 10.0


def test_idle_endpoints_are_forgotten() -> None:
    breakers = opened()
    breakers.failed("b", 109.9)
    assert len(breakers) == 2
    breakers.failed("b", 110.0)
    assert len(breakers) == 1
    assert breakers.open_until("a") is None


def test_the_number_of_endpoints_is_limited() -> None:
    breakers, random = CircuitBreakers(OPTIONS), Random(0)
    for now in range(1_000):
        breakers.failed(random.randrange(100), now / 100)
        assert len(breakers) <= 5
    breakers.failed("last", 10.0)
    for each in range(4):
        breakers.failed(each, 10.0)
    breakers.failed("last", 10.0)
    for each in range(4, 8):
        breakers.failed(each, 10.0)
    breakers.failed("last", 10.0)
    assert breakers.open_until("last") == 20.0  # it was not among the forgotten
