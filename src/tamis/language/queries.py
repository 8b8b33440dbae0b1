"""TEMPORARY until the columnar Subscriptions are merged."""
class Queries:
    pass
