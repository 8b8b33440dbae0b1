"""LLVM's code for kernels: collected from Numba, optimised, with C functions to call.

Only :mod:`.build` imports this: it changes what Numba does in this process. It uses what Numba does
not document: ``CodeLibrary``, the calling convention, and the data model of arrays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, get_type_hints

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types as numba_types
from numba.core import cgutils as numba_cgutils
from numba.core import codegen as numba_codegen
from numba.core.callconv import CPUCallConv
from numba.core.registry import cpu_target
from numba.np.numpy_support import from_dtype

from tamis.core.kernel.declare import Parameter, fields_of, hints_of, parameter_of, prototype_of
from tamis.core.kernel.library import symbol_of

# Numba has types that are none to mypy.
types: Any = numba_types
cgutils: Any = numba_cgutils
codegen: Any = numba_codegen
call_convention: Any = CPUCallConv

_WORD = ir.IntType(64)
_RESULTS = {int: types.int64, bool: types.boolean, np.uint64: types.uint64, type(None): types.none}
_DEFINES = re.compile(r"^(define .*)$", re.MULTILINE)

# LLVM tunes x86-64-v4 for the first processors with AVX-512, which had better not use wide vectors.
# For later ones the tokenizer is 2 % faster.
_TUNED_FOR = {"x86-64-v4": "znver4"}


class _Collected(codegen.JITCodeLibrary):  # type: ignore[misc]
    """What Numba writes for one function: the text is kept; nothing is optimised or loaded."""

    def add_ir_module(self, module: Any) -> None:
        self.texts.append(cgutils.normalize_ir_text(str(module)))

    def finalize(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        return 1  # nobody calls it

    @property
    def texts(self) -> list[str]:
        texts: list[str] = self.__dict__.setdefault("texts_", [])
        return texts


codegen.JITCPUCodegen._library_class = _Collected
codegen.JITCPUCodegen.set_env = lambda *_: None


class Collector:
    """The code of some kernels, and of all that they call.

    Attributes:
        prototypes: parameters and result of each kernel, by symbol.
    """

    def __init__(self) -> None:
        self.prototypes: dict[str, tuple[list[Parameter], str]] = {}
        self._called: list[_Collected] = []
        self._entries = ir.Module("entries")

    def add(self, kernel: Any) -> None:
        """Compile a kernel, given as Numba's dispatcher, for its declared signature.

        Raises:
            TypeError: the compiled kernel returns something else than is declared.
        """
        symbol = symbol_of(kernel.py_func)
        self.prototypes[symbol] = prototype_of(kernel.py_func)
        signature = tuple(map(_numba_type, hints_of(kernel.py_func)))
        kernel.compile(signature)
        compiled = kernel.overloads[signature]
        declared = _RESULTS[get_type_hints(kernel.py_func)["return"]]
        if compiled.signature.return_type is not declared:
            # The caller reads 64 bits of the result.
            found = compiled.signature.return_type
            raise TypeError(f"{symbol} is declared to return {declared}, and returns {found}")
        self._called.append(compiled.library)
        _add_entry(self._entries, symbol, compiled)

    def object_for(self, level: str) -> bytes:
        """Machine code of all kernels, for a level of processors."""
        target = llvm.Target.from_triple(llvm.get_process_triple())
        cpu = "generic" if level == "aarch64" else level
        machine = target.create_target_machine(cpu=cpu, opt=3, reloc="pic", codemodel="default")
        module = llvm.parse_assembly(cgutils.normalize_ir_text(str(self._entries)))
        module.triple, module.data_layout = llvm.get_process_triple(), str(machine.target_data)
        optimiser = _Optimiser(machine, _TUNED_FOR.get(level, cpu))
        for library in self._called:
            code = optimiser.optimised(library).clone()
            _set_linkage(code.functions, "weak_odr")  # or what nobody calls yet is left out
            module.link_in(code)
        inner = [each for each in module.functions if each.name not in self.prototypes]
        # Names of Numba's are unique in this process alone.
        _set_linkage([*inner, *module.global_variables], "internal")
        return bytes(machine.emit_object(module))


def _set_linkage(values: Iterable[llvm.ValueRef], linkage: str) -> None:
    for value in values:
        if not value.is_declaration:
            value.linkage = linkage


class _Optimiser:
    """The passes that Numba runs, for one level of processors.

    As with Numba, what a function calls is optimised before it, and with it again. To run the
    passes once, over all functions of a package together, took a fifth less time, but the tokenizer
    was 5 % slower.
    """

    def __init__(self, machine: llvm.TargetMachine, tuned_for: str) -> None:
        self._tuned = rf'\1 "tune-cpu"="{tuned_for}"'
        self._layout = str(machine.target_data)
        self._full = _pass_builder(machine, speed_level=3, vectorise=True)
        self._cheap = _pass_builder(machine, speed_level=0, vectorise=False)
        self._by_function = self._full.getFunctionPassManager()
        self._first = self._cheap.getModulePassManager()
        self._first.add_loop_rotate_pass()
        self._first.add_instruction_combine_pass()
        self._first.add_jump_threading_pass()
        self._optimised: dict[int, llvm.ModuleRef] = {}

    def optimised(self, library: _Collected) -> llvm.ModuleRef:
        """The code of a function, and of all that it calls; done once for all its callers."""
        if id(library) not in self._optimised:
            self._optimised[id(library)] = self._optimise(library)
        return self._optimised[id(library)]

    def _optimise(self, library: _Collected) -> llvm.ModuleRef:
        module = llvm.parse_assembly("")
        module.triple, module.data_layout = llvm.get_process_triple(), self._layout
        for text in library.texts:
            part = llvm.parse_assembly(_DEFINES.sub(self._tuned, text))
            for function in part.functions:
                if not function.is_declaration:
                    self._by_function.run(function, self._full)
            module.link_in(part)
        for used in {id(used): used for used in library._linking_libraries}.values():
            module.link_in(self.optimised(used), preserve=True)
        self._first.run(module, self._cheap)
        self._full.getModulePassManager().run(module, self._full)
        # What several functions call is in the code of each; and what is called once is not inlined
        # for that alone.
        own = [each for each in module.functions if each.linkage == llvm.Linkage.external]
        _set_linkage(own, "linkonce_odr")
        return module


def _pass_builder(machine: llvm.TargetMachine, speed_level: int, vectorise: bool) -> Any:
    tuning = llvm.create_pipeline_tuning_options(speed_level=speed_level)
    tuning.loop_vectorization = tuning.slp_vectorization = vectorise
    return llvm.create_pass_builder(machine, tuning)


# -- signatures ---------------------------------------------------------------------------------


def _numba_type(hint: Any) -> Any:
    """The type that Numba has for an annotation of a kernel."""
    fields = fields_of(hint)
    if fields is not None:
        return types.NamedTuple(tuple(map(_numba_type, fields)), hint)
    parameter = parameter_of(hint)
    if hint is bool:
        return types.boolean
    if not parameter.endswith("]"):
        return getattr(types, parameter)
    item, _, commas = parameter.partition("[")
    return types.Array(from_dtype(np.dtype(item)), len(commas), "C")


def _add_entry(module: ir.Module, symbol: str, compiled: Any) -> None:
    """Write the C function of a kernel: it makes Numba's arguments of pointers and lengths."""
    context = cpu_target.target_context
    signature = compiled.signature
    convention = call_convention(context)
    called = ir.Function(
        module,
        convention.get_function_type(signature.return_type, signature.args),
        compiled.fndesc.llvm_func_name,
    )
    words = [kind for each in signature.args for kind in _words(each)]
    has_result = signature.return_type is not types.none
    returned = _WORD if has_result else ir.VoidType()
    entry = ir.Function(module, ir.FunctionType(returned, words), symbol)
    builder = ir.IRBuilder(entry.append_basic_block())
    result = builder.alloca(_WORD)
    builder.store(_WORD(0), result)
    exception = builder.alloca(called.function_type.args[1].pointee)
    given = iter(entry.args)
    arguments = [value for each in signature.args for value in _arguments(builder, each, given)]
    cast = [
        builder.bitcast(value, kind) if isinstance(kind, ir.PointerType) else value
        for value, kind in zip(arguments, called.function_type.args[2:], strict=True)
    ]
    place = builder.bitcast(result, called.function_type.args[0])
    builder.call(called, [place, exception, *cast])
    if has_result:
        builder.ret(builder.load(result))
    else:
        builder.ret_void()


def _words(kind: Any) -> Iterator[ir.Type]:
    """The C parameters of a value."""
    if isinstance(kind, types.NamedTuple):
        for field in kind.types:
            yield from _words(field)
    elif isinstance(kind, types.Array):
        yield ir.IntType(8).as_pointer()
        yield from [_WORD] * kind.ndim
    else:
        yield _WORD


def _arguments(builder: ir.IRBuilder, kind: Any, given: Iterator[Any]) -> Iterator[Any]:
    """What Numba calls a function with, of the C arguments of a value."""
    if isinstance(kind, types.NamedTuple):
        for field in kind.types:
            yield from _arguments(builder, field, given)
    elif isinstance(kind, types.Array):
        data = next(given)
        shape = [next(given) for _ in range(kind.ndim)]
        size = _WORD(kind.dtype.bitwidth // 8 if kind.dtype is not types.boolean else 1)
        strides = [size]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        count = shape[0] if kind.ndim == 1 else builder.mul(*shape)
        nothing = ir.Constant(data.type, None)
        yield from (nothing, nothing, count, size, data, *shape, *strides)
    elif kind is types.boolean:
        yield builder.zext(builder.trunc(next(given), ir.IntType(1)), ir.IntType(8))
    else:
        yield next(given)
