"""Files for the tests of the command line."""

from collections.abc import Callable

import pytest


@pytest.fixture
def orders(write: Callable[..., None]) -> None:
    """A set of subscriptions, a folder of documents, one of them broken."""
    write(
        {
            "orders.tsv": "large\t//order[total > 100]\n# a comment\n\nurgent\t//order[@urgent]\n"
            "//item\n",
            "in/1.xml": "<order urgent='yes'><total>250</total><item/></order>",
            "in/2.xml": "<order>\n<total>5</order>",
            "in/3.xml": "<order><total>5</total></order>",
        }
    )
