"""Kernels: compiled functions, optimised as a whole where Python enters them.

numba optimises every function, and makes machine code of it, before it links it into its callers,
where the same code is optimised again: what lies ten calls deep is compiled ten times. Python
enters few kernels. So a kernel has two faces: called from Python it is an ordinary function of
numba, kept on disk; called from another kernel it is a *part*, code of LLVM that has not been
optimised, without machine code and without an entrance for Python, which the kernel that Python
entered is linked from and optimised with, once.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numba
from llvmlite import binding, ir
from numba.core import config
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.cpu import CPUContext
from numba.core.environment import lookup_environment

from reluflow.kernels.borrowing import BORROWING
from reluflow.kernels.entered import watched
from reluflow.kernels.haste import haste, replaced

# numba's functions that count references, and by how much they change a count
COUNTS = {"NRT_incref": 1, "NRT_decref": -1}
# whether passes can be chosen as below; before numba 0.62 its own do
TUNED = not hasattr(binding, "create_pass_manager_builder")


def _no_wrapper(*given: Any, **options: Any) -> None:
    """Nothing: no C code calls a kernel."""


_NO_WRAPPER = ((CPUContext, "create_cfunc_wrapper", _no_wrapper),)


@cache
def _plain_counts() -> Any:
    """Code of LLVM that counts the references to an array without locking the memory.

    numba counts by atomic operations, dozens for each neuron a kernel looks at: most of its time.
    No two threads ever count the same: arrays get a new count at each call of a kernel, and a
    kernel has one thread.
    """
    module, word = ir.Module("plain_counts"), ir.IntType(64 if sys.maxsize > 2**32 else 32)
    place = ir.IntType(8).as_pointer()
    function = ir.FunctionType(ir.VoidType(), [place])
    ends = ir.Function(module, function, "NRT_MemInfo_call_dtor")
    for name, change in COUNTS.items():
        counts = ir.Function(module, function, name)
        counts.attributes.add("noinline")  # numba looks for pairs of calls that cancel
        builder = ir.IRBuilder(counts.append_basic_block())
        is_array = builder.icmp_unsigned("!=", counts.args[0], place(None))
        with builder.if_then(is_array, likely=True):
            count = builder.bitcast(counts.args[0], word.as_pointer())
            left = builder.add(builder.load(count), word(change))
            builder.store(left, count)
            if change < 0:
                with builder.if_then(builder.icmp_unsigned("==", left, word(0)), likely=False):
                    builder.call(ends, counts.args)
        builder.ret_void()
    return binding.parse_assembly(str(module))


class _Unset:
    """The code generator of a part: it has no machine code whose environment could be set."""

    def set_env(self, env_name: str, env: Any) -> None:
        """Nothing to do."""


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """Code that LLVM keeps small: no loop is unrolled.

    Copies of loops were a third of the time of LLVM. It may still make vectors of them, and several
    sums of one where a kernel allows it: these decide the last bits.
    """

    def _optimize_functions(self, module: Any) -> None:
        """Shorten the functions of a module, each for itself, before they meet."""
        if not TUNED:
            super()._optimize_functions(module)
            return
        module.data_layout = self._codegen._data_layout
        builder = self._builder(1)
        passes = builder.getFunctionPassManager()
        passes.add_refprune_pass()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        """Optimise as a whole."""
        if not TUNED:
            super()._optimize_final_module()
            return
        builder = self._builder(3)
        passes = builder.getModulePassManager()
        passes.add_refprune_pass()
        passes.run(self._final_module, builder)

    def _builder(self, level: int) -> Any:
        options = binding.create_pipeline_tuning_options(speed_level=level)
        options.loop_unrolling = False
        options.loop_vectorization = bool(config.LOOP_VECTORIZE)
        options.slp_vectorization = bool(config.SLP_VECTORIZE)
        return binding.create_pass_builder(self._codegen._tm, options)


class _Part(_Library):
    """Code to be linked, neither optimised as a whole nor turned into machine code."""

    _linked: Any = None

    @property
    def codegen(self) -> Any:
        return _Unset()

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    def finalize(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def alone(self) -> Any:
        """Its code, without that of the parts it calls."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        """Its code with all that it calls, for functions of others."""
        if self._linked is None:
            self._linked = self.alone().clone()
            for library in _called(self):
                self._linked.link_in(_code_of(library), preserve=True)
        return self._linked


class _Whole(_Library):
    """Machine code with all its parts; their environments are set here, where their code is."""

    def finalize(self) -> None:
        self._final_module.link_in(_plain_counts(), preserve=True)
        for library in _called(self):
            self._final_module.link_in(_code_of(library), preserve=True)
        for function in self._final_module.functions:
            is_part = function.linkage == binding.Linkage.linkonce_odr or function.name in COUNTS
            if is_part and not function.is_declaration:
                # called from here alone, and a symbol that no other kernel finds: LLVM may leave
                # out arguments
                function.linkage = binding.Linkage.private
        self._linking_libraries: list[Any] = []
        super().finalize()

    def _finalize_specific(self) -> None:
        super()._finalize_specific()
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name)
            if environment is not None:
                self._codegen.set_env(variable.name, environment)


def _called(library: Any) -> list[Any]:
    """The libraries that this one calls, directly or through parts, each once.

    What calls comes before what it calls: LLVM leaves out what nothing has called so far.
    """
    met: set[Any] = set()
    last_first: list[Any] = []

    def visit(one: Any) -> None:
        for inner in one._linking_libraries if one is library or isinstance(one, _Part) else ():
            if inner not in met:
                met.add(inner)
                visit(inner)
                last_first.append(inner)

    visit(library)
    return last_first[::-1]


def _code_of(library: Any) -> Any:
    return library.alone() if isinstance(library, _Part) else library._get_module_for_linking()


class _Parts(Compiler):  # type: ignore[misc]
    """Compiles a kernel for its callers."""

    def define_pipelines(self) -> Any:
        self.state.library = _Part(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


class _Wholes(Compiler):  # type: ignore[misc]
    """Compiles a kernel for Python; what numba itself adds is a part, too."""

    def compile_extra(self, func: Any) -> Any:
        codegen = self.state.targetctx.codegen()
        # of this object, in place of that of its class
        codegen._library_class = _Part
        try:
            with haste(), replaced(BORROWING), replaced(_NO_WRAPPER):
                return super().compile_extra(func)
        finally:
            del codegen._library_class

    def define_pipelines(self) -> Any:
        codegen = self.state.targetctx.codegen()
        self.state.library = _Whole(codegen, self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return super().define_pipelines()


def kernel(function: Any = None, **options: Any) -> Any:
    """Compile a function when it is called, with options of `numba.njit`.

    It runs without the interpreter's lock and is kept on disk.
    """
    if function is None:
        return lambda given: kernel(given, **options)
    whole = numba.njit(cache=True, nogil=True, pipeline_class=_Wholes, **options)(function)
    if whole is function:  # numba is switched off
        return watched(function)
    bare = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    part = numba.njit(nogil=True, pipeline_class=_Parts, **bare, **options)(function)
    whole.get_call_template, whole.get_overload = part.get_call_template, part.get_overload
    whole.part, part.whole = part, whole
    return whole


def is_ready(kernel: Any) -> bool:
    """Whether a kernel has been compiled, or loaded, for Python or for another kernel."""
    return bool(kernel.overloads or kernel.part.overloads)
