"""Random variables that draw vectors, or draw from a vector, as calls of samplers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import aesara.tensor.random.basic as aer
import numpy as np
from aesara.graph.basic import Apply
from aesara.tensor.random.op import RandomVariable
from aesara.tensor.type_other import NoneTypeT

from fixed_modes.numba import vector_samplers as samplers
from fixed_modes.numba.random_shapes import element, fixed_message, write_lengths, write_steps
from fixed_modes.numba.writer import Writer, numpy_dtype


def write_vector_draw(
    op: RandomVariable, node: Apply, writer: Writer, write_generator: Callable[..., str]
) -> bool:
    """Write a draw; False for a variable, or parameters, that this module has no sampler for."""
    write = _WRITERS.get(type(op))
    kinds = [getattr(v.type, "dtype", "int64") for v in (*node.inputs[3:], node.outputs[1])]
    if write is None or "float16" in kinds or any(np.dtype(k).kind == "c" for k in kinds):
        return False
    return write(node, lambda: write_generator(op, node, writer), writer)


class _Batch:
    """Loops over the independent axes of a variable, and what stands there."""

    def __init__(self, node: Apply, writer: Writer) -> None:
        self.writer, op = writer, node.op
        self.parameters, self.value = node.inputs[3:], node.outputs[1]
        self.lengths = write_lengths(node, op.ndims_params, op.ndim_supp, writer)
        self.names = [writer.name(p) for p in self.parameters]
        self.steps = [
            write_steps(p, own, name, self.lengths, writer)
            for p, own, name in zip(self.parameters, op.ndims_params, self.names)
        ]
        self.indices = [writer.fresh("i") for _ in self.lengths]

    def allocate(self, *own_lengths: str) -> str:
        """Name the result, whose last axes have lengths `own_lengths`."""
        result = self.writer.define(self.value, "draws")
        shape = ", ".join([*self.lengths, *own_lengths])
        dtype = numpy_dtype(self.value.type.dtype)
        self.writer.emit(f"{result} = np.empty(({shape},), {dtype})")
        return result

    @contextmanager
    def loops(self) -> Iterator[list[str]]:
        """Open the loops; give the parameters there."""
        with ExitStack() as nest:
            for index, length in zip(self.indices, self.lengths):
                nest.enter_context(self.writer.block(f"for {index} in range({length}):"))
            yield [
                element(name, self.indices, steps) for name, steps in zip(self.names, self.steps)
            ]

    def part(self, result: str) -> str:
        return f"{result}[{', '.join(self.indices)}]" if self.indices else result


def _fits(node: Apply) -> bool:
    """Say whether the parameters have no more axes than NumPy can broadcast."""
    op = node.op
    ndim = node.outputs[1].type.ndim - op.ndim_supp
    return all(0 <= p.type.ndim - own <= ndim for p, own in zip(node.inputs[3:], op.ndims_params))


def _write_refusals(code: str, messages: tuple[str, ...], writer: Writer) -> None:
    for number, message in enumerate(messages, start=1):
        with writer.block(f"if {code} == {number}:"):
            writer.emit_failure(ValueError, fixed_message(message))


def _write_call(
    batch: _Batch, sampler: Any, messages: tuple[str, ...], rng: str, writer: Writer
) -> None:
    result = batch.allocate(f"{batch.names[-1]}.shape[{batch.parameters[-1].type.ndim - 1}]")
    function, code = writer.use_global(sampler.__name__, sampler), writer.fresh("refused")
    with batch.loops() as arguments:
        text = ", ".join([rng, *arguments, batch.part(result)])
        writer.emit(f"{code} = {function}({text})")
        _write_refusals(code, messages, writer)


def _write_multinomial(node: Apply, generator: Callable[[], str], writer: Writer) -> bool:
    n_dtype = node.inputs[3].type.dtype
    if not _fits(node) or np.dtype(n_dtype).kind not in "biu" or n_dtype == "uint64":
        return False
    batch = _Batch(node, writer)
    refusals = samplers.MULTINOMIAL_REFUSALS
    _write_call(batch, samplers.multinomial_into, refusals, generator(), writer)
    return True


def _write_dirichlet(node: Apply, generator: Callable[[], str], writer: Writer) -> bool:
    if not _fits(node):
        return False
    batch = _Batch(node, writer)
    refusals = samplers.DIRICHLET_REFUSALS
    _write_call(batch, samplers.dirichlet_into, refusals, generator(), writer)
    return True


def _write_normal(node: Apply, generator: Callable[[], str], writer: Writer) -> bool:
    if not _fits(node):
        return False
    batch = _Batch(node, writer)
    mean, cov = node.inputs[3:]
    rng = generator()
    result = batch.allocate(f"{batch.names[0]}.shape[{mean.type.ndim - 1}]")
    factor_of = writer.use_global("normal_factor", samplers.normal_factor)
    function = writer.use_global("normal_into", samplers.normal_into)
    factor = writer.fresh("factor")
    is_one = mean.type.ndim == 1 and cov.type.ndim == 2
    if is_one:
        writer.emit(f"{factor} = {factor_of}({batch.names[0]}, {batch.names[1]})")
    with batch.loops() as (own_mean, own_cov):
        if not is_one:
            writer.emit(f"{factor} = {factor_of}({own_mean}, {own_cov})")
        writer.emit(f"{function}({rng}, {own_mean}, {factor}, {batch.part(result)})")
    return True


def _write_categorical(node: Apply, generator: Callable[[], str], writer: Writer) -> bool:
    if not _fits(node):
        return False
    batch, rng = _Batch(node, writer), generator()
    function = writer.use_global("draw_category", samplers.draw_category)
    dtype = numpy_dtype(node.outputs[1].type.dtype)
    result = batch.allocate() if batch.lengths else ""
    with batch.loops() as (p,):
        text = f"{dtype}({function}({rng}, {p}))"
        target = batch.part(result) if result else writer.define(node.outputs[1], "category")
        writer.emit(f"{target} = {text}")
    return True


def _write_permutation(node: Apply, generator: Callable[[], str], writer: Writer) -> bool:
    (x,), out = node.inputs[3:], node.outputs[1]
    if x.type.ndim == 0 and np.dtype(x.type.dtype).kind not in "iu":
        return False
    if out.type.ndim != max(x.type.ndim, 1):
        return False
    rng, source = generator(), writer.name(x)
    function = writer.use_global("shuffled_positions", samplers.shuffled_positions)
    positions = writer.fresh("positions")
    count = f"np.int64({source})" if x.type.ndim == 0 else f"{source}.shape[0]"
    writer.emit(f"{positions} = {function}({rng}, {count})")
    _write_take(node, positions, x.type.ndim, source, writer)
    return True


def _write_take(node: Apply, positions: str, ndim: int, source: str, writer: Writer) -> None:
    """Write ``source[positions]``, or for a number of elements the positions themselves."""
    out = node.outputs[1]
    dtype = numpy_dtype(out.type.dtype)
    result = writer.define(out, "draws")
    lengths = [f"{positions}.shape[0]", *(f"{source}.shape[{n}]" for n in range(1, ndim))]
    writer.emit(f"{result} = np.empty(({', '.join(lengths)},), {dtype})")
    indices = [writer.fresh("i") for _ in lengths]
    with ExitStack() as nest:
        for index, length in zip(indices, lengths):
            nest.enter_context(writer.block(f"for {index} in range({length}):"))
        place = f"{positions}[{indices[0]}]"
        value = f"{source}[{', '.join([place, *indices[1:]])}]" if ndim else place
        writer.emit(f"{result}[{', '.join(indices)}] = {dtype}({value})")


def _write_choice(node: Apply, generator: Callable[[], str], writer: Writer) -> bool:
    a, p, replace = node.inputs[3:]
    out = node.outputs[1]
    has_p = not isinstance(p.type, NoneTypeT)
    if a.type.ndim != 1 or replace.type.ndim != 0 or (has_p and p.type.ndim != 1):
        return False
    _, size, *_ = node.inputs
    if out.type.ndim != (size.type.shape[0] or 0):
        return False
    rng, source = generator(), writer.name(a)
    lengths = write_lengths(node, (1, 1, 0), 0, writer) if out.type.ndim else []
    count, positions, code = (writer.fresh(w) for w in ("count", "positions", "refused"))
    writer.emit(
        f"{count} = {' * '.join(lengths) or '1'}", f"{positions} = np.empty({count}, np.int64)"
    )
    arguments = [rng, f"{source}.shape[0]", count, writer.name(replace), positions]
    sampler: Any = samplers.choose_positions
    if has_p:
        sampler = samplers.choose_positions_by
        arguments += [writer.name(p), repr(_tolerance(p.type.dtype))]
    function = writer.use_global(sampler.__name__, sampler)
    writer.emit(f"{code} = {function}({', '.join(arguments)})")
    _write_refusals(code, samplers.CHOICE_REFUSALS, writer)
    result = writer.define(out, "chosen")
    if not lengths:
        writer.emit(f"{result} = {source}[{positions}[0]]")
        return True
    dtype = numpy_dtype(out.type.dtype)
    flat, index = writer.fresh("flat"), writer.fresh("i")
    writer.emit(f"{flat} = np.empty({count}, {dtype})")
    with writer.block(f"for {index} in range({count}):"):
        writer.emit(f"{flat}[{index}] = {source}[{positions}[{index}]]")
    writer.emit(f"{result} = {flat}.reshape(({', '.join(lengths)},))")
    return True


def _tolerance(dtype: str) -> float:
    """Give how far from 1 NumPy lets probabilities of a dtype sum up."""
    kinds = ["float64", dtype] if np.dtype(dtype).kind == "f" else ["float64"]
    return max(float(np.sqrt(np.finfo(kind).eps)) for kind in kinds)


_WRITERS: dict[type, Callable[[Apply, Callable[[], str], Writer], bool]] = {
    aer.MultinomialRV: _write_multinomial,
    aer.DirichletRV: _write_dirichlet,
    aer.MvNormalRV: _write_normal,
    aer.CategoricalRV: _write_categorical,
    aer.PermutationRV: _write_permutation,
    aer.ChoiceRV: _write_choice,
}
