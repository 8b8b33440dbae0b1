"""Queries matched against documents: ``matcher`` compiles a set, ``planner`` chooses the engines.

Start reading at ``matcher``. ``batches`` has documents answered by all engines; ``engine`` is their
contract, ``engines`` has them. ``match`` and ``selection`` are results, ``index`` is live sets,
``saved`` files, and ``conformance`` matching with a DTD.
"""
