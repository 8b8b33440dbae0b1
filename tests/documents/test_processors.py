"""The same answers with every index checked; tests of the wheel do it for levels of processors."""

from __future__ import annotations

from tests.support.processes import CHECKED, output, start

MODULE = "tests.documents.sample"


def printed(**environment: str) -> dict[str, str]:
    """What the sample prints in a new process, by its first words."""
    return dict(line.split(" ", 1) for line in output(start(MODULE, **environment)).splitlines())


def test_the_same_answers() -> None:
    native = printed()
    checked = printed(TAMIS_KERNELS="jit", **CHECKED)
    assert (native.pop("kernels"), checked.pop("kernels")) == ("native", "jit, every index checked")
    assert checked == native
