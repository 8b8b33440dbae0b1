"""``CircuitBreakers``: when an endpoint that fails again and again may be tried.

Nothing here reads a clock: callers give the time, in seconds of any clock that does not go back.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple


class BreakerOptions(NamedTuple):
    """When a circuit breaker opens, and for how long.

    Attributes:
        failures: it opens after so many failures in a row.
        open_s, open_s_max: it is open for ``open_s`` at first, and after each failed probe for
            twice as long, but no longer than ``open_s_max``.
        idle_s: an endpoint is forgotten if nothing failed for so long after it could be tried.
        endpoints_max: if more endpoints fail, the one that failed least recently is forgotten.
    """

    failures: int = 5
    open_s: float = 30.0
    open_s_max: float = 3_600.0
    idle_s: float = 86_400.0
    endpoints_max: int = 10_000


@dataclass(slots=True)
class _Circuit:
    """What is known of an endpoint whose last attempt failed.

    Attributes:
        failures: in a row.
        wait_s: how long the breaker is open; 0 while it is closed.
        until: when the next attempt, or the next probe, may begin.
        is_probing: whether a probe is on its way.
    """

    failures: int = 0
    wait_s: float = 0.0
    until: float = 0.0
    is_probing: bool = False


class CircuitBreakers:
    """A circuit breaker for each endpoint (a host and a port). Endpoints that work need no memory.

    >>> breakers = CircuitBreakers(BreakerOptions(failures=2, open_s=10.0))
    >>> for _ in range(2):
    ...     assert breakers.admit("a", 0.0)
    ...     breakers.failed("a", 0.0)
    >>> breakers.admit("a", 9.0), breakers.open_until("a")
    (False, 10.0)
    >>> breakers.admit("a", 10.0), breakers.admit("a", 10.0)  # one probe
    (True, False)
    >>> breakers.failed("a", 11.0)
    >>> breakers.open_until("a")
    31.0
    """

    def __init__(self, options: BreakerOptions | None = None) -> None:
        self.options = options or BreakerOptions()
        self._circuits: OrderedDict[Hashable, _Circuit] = OrderedDict()  # the last to fail is last

    def __len__(self) -> int:
        """How many endpoints are remembered."""
        return len(self._circuits)

    def open_until(self, endpoint: Hashable) -> float | None:
        """When the next probe may begin; None if the breaker is closed."""
        circuit = self._circuits.get(endpoint)
        return circuit.until if circuit and circuit.wait_s else None

    def admit(self, endpoint: Hashable, now: float) -> bool:
        """Whether an attempt may begin now; of an open breaker, this begins the probe.

        A probe whose result never comes blocks the endpoint as long as a failed one would, and no
        longer.
        """
        circuit = self._circuits.get(endpoint)
        if circuit is None or not circuit.wait_s:
            return True
        if now < circuit.until:
            return False
        circuit.is_probing, circuit.until = True, now + circuit.wait_s
        return True

    def succeeded(self, endpoint: Hashable) -> None:
        """An attempt succeeded: this closes the breaker."""
        self._circuits.pop(endpoint, None)

    def failed(self, endpoint: Hashable, now: float) -> None:
        """An attempt failed.

        While a breaker is open, only the failure of a probe counts. Attempts that began before the
        breaker opened say nothing new.
        """
        circuit = self._circuits.setdefault(endpoint, _Circuit())
        options = self.options
        if circuit.wait_s and not circuit.is_probing:
            return
        self._circuits.move_to_end(endpoint)
        circuit.failures += 1
        if circuit.failures >= options.failures:
            circuit.wait_s = min(options.open_s_max, circuit.wait_s * 2 or options.open_s)
            circuit.until, circuit.is_probing = now + circuit.wait_s, False
        else:
            circuit.until = now
        self._forget(now)

    def _forget(self, now: float) -> None:
        while len(self._circuits) > 1:
            endpoint, circuit = next(iter(self._circuits.items()))
            is_idle = circuit.until + self.options.idle_s <= now
            if not is_idle and len(self._circuits) <= self.options.endpoints_max:
                return
            del self._circuits[endpoint]
