"""Expressions in bytes → the words of a table, in bulk, without a Python object for any.

A *plain* expression is a location path from the document node with steps to children, descendants,
attributes and text nodes, and predicates of ``and``, ``or``, ``not()``, relative paths of the same
steps, comparisons of these, ``.`` and attributes with literals, ``contains()`` and
``starts-with()``. What is not plain is declined, and :func:`tamis.language.xpath.parse` then reads
it, or says what is wrong with it.
"""
