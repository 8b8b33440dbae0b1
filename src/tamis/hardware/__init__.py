"""Subscriptions as circuits: a generator of path stacks for FPGAs.

``read`` turns queries into tables, ``columns`` lays out their stacks, ``stacks`` and ``twigs`` are
those stacks in hardware. ``automaton``, ``lexer`` and ``parser`` read XML a byte a cycle.
``circuit`` puts all together, ``generate`` writes it as Verilog with a manifest. ``tools`` runs
Yosys, nextpnr and Verilator; ``simulate`` matches documents with a circuit, ``report`` says what it
takes. Only this package imports Amaranth.
"""
