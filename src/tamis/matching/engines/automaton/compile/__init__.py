"""From queries to a program; start at ``compile_queries`` in ``queries``.

``queries`` also says what is left to other engines. ``builder`` holds the program that grows: each
row once, added by kernels. ``freeze`` sorts it into the arrays of the program, some by ``arrays``.
"""
