"""Kernels: the functions of flat arrays that are compiled to machine code when Tamis is built.

A kernel is plain Python that Numba can compile. It allocates nothing and raises nothing: it fills
arrays that the caller gives, and returns a count or a status.

* ``@kernel``: Python calls it, and kernels may. Its annotations declare its signature
  (:func:`.declare.prototype_of`).
* ``@called``: kernels alone call it. ``@inlined``: it is compiled into each caller.
* An *intrinsic* (:func:`.declare.intrinsic`) is written in LLVM's terms, in the module of the same
  name with ``_llvm`` behind it. Beside it stands a twin in Python that says what it does.

:mod:`.build` compiles all kernels into one native library, and needs Numba. :mod:`.library` finds
that library, proves that it belongs to these sources and to this processor, and calls its
functions; Numba is not imported. The environment variable ``TAMIS_KERNELS`` has two other ways:

=========  ===================================================================================
``native`` The library; the default.
``jit``    Numba compiles in memory, when a kernel is first called. For who changes kernels, and,
           with ``NUMBA_BOUNDSCHECK=1``, to check every index.
``python`` Nothing is compiled: for debuggers and coverage, on small inputs.
=========  ===================================================================================

When not to write a kernel: where NumPy does the same in a few calls, or where the work is done once
for each set of subscriptions and takes less than a millisecond.
"""

from tamis.core.kernel.declare import U, called, inlined, kernel

__all__ = ["U", "called", "inlined", "kernel"]
