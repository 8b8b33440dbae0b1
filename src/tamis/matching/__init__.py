"""Queries matched against documents: ``matcher`` compiles a set, ``planner`` chooses the engines.

Start reading at ``matcher``. ``batches`` groups documents and gives them to all engines; ``engine``
is the contract of ``engines``. ``match`` and ``selection`` are results, ``live`` has sets that
change, ``saved`` has files, and ``conformance`` matches with a DTD.
"""
