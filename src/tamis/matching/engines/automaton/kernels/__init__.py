"""Matches events: a table look-up at the start of an element, one or two at its end.

What the tables do not have yet is computed, once, and added: ``starts.advance`` for a start,
``ends.close`` and ``ends.merge`` for an end. These take time in proportion to what is known at that
place, at most to the size of the program. What is true of string values (``values.read_value``)
joins the child facts. ``scan.scan`` is what Python calls.
"""
