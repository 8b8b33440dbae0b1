"""Attribute–value events, matched against disjunctions of filters."""
