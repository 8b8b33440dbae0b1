"""``tamis workload``: seeded generators of subscriptions, documents and events."""

from tamis.cli.options import Commands

__all__ = ["commands"]

commands = Commands(
    "workload",
    {
        "queries": "Generate path queries, as a file of subscriptions.",
        "twigs": "Generate twigs: queries with branches.",
        "transformations": "Generate transforming subscriptions.",
        "documents": "Generate valid documents, within a depth and a size.",
        "dblp": "Generate a bibliography of any size.",
        "events": "Generate events and subscriptions of one filter.",
    },
    package=__name__,
    help="Generate subscriptions, documents and events: for one seed the same bytes everywhere.",
)
