"""`fixed_modes.jax_function`: an Aesara graph as a function to be used within JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Union

import aesara
import jax
import jax.numpy as jnp
import numpy as np
from aesara.compile.sharedvalue import SharedVariable
from aesara.graph.basic import Variable, graph_inputs
from aesara.graph.fg import FunctionGraph
from aesara.tensor.random.type import RandomType
from jax.experimental import enable_x64

from fixed_modes.errors import UnsupportedOpError
from fixed_modes.jax import lowerings  # noqa: F401  (fills the dispatch table)
from fixed_modes.jax.evaluate import evaluate
from fixed_modes.jax.flags import Flags
from fixed_modes.jax.frame import Checks, Frame, NeedsConcrete, NeedsEager
from fixed_modes.jax.padded import PaddedTrace
from fixed_modes.jax.rng import RandomKey, key_from_rng, rng_from_key
from fixed_modes.jax.settings import Settings

#: Integers up to this size are known while JAX traces, if they are no JAX arrays.
LARGEST_KNOWN = 16

#: From this JAX on, what is traced with 64 bits may be part of what is not.
MIXES_PRECISIONS = (0, 4, 36)

_WIDE = ("float64", "complex128", "int64", "uint64")


class JAXFunction:
    """A pure function of JAX arrays; see `fixed_modes.jax_function`, which makes it.

    Attributes
    ----------
    shared
        The shared variables of the graph.  Their values are arguments, in this
        order, after those for the inputs.
    """

    def __init__(
        self,
        fgraph: FunctionGraph,
        shared: Sequence[SharedVariable],
        is_single: bool,
        updated: Mapping[int, int] | None,
        settings: Settings,
    ) -> None:
        self.fgraph = fgraph
        self.shared = list(shared)
        self._n_inputs = len(fgraph.inputs) - len(self.shared)
        self._is_single = is_single
        # Which outputs are new values, by the positions of the shared variables.
        self._updated = updated
        self._settings = settings
        self.__name__ = "jax_function"

    def __call__(self, *args: Any) -> Any:
        """Compute the outputs, and the new values of shared variables if there are updates."""
        result, checks = self._compute(args)
        _raise_what_is_known(checks)
        return result

    def checked(self, *args: Any) -> tuple[Any, Flags]:
        """Compute what a call computes, and say which run-time checks failed.

        Inside of `jax.jit` and `jax.vmap` too, where nothing can be raised.

        Returns
        -------
        The result of a call, and flags, whose method ``raise_first()`` raises the error
        of the first check that failed, once their values are there.

        Examples
        --------
        >>> import jax, aesara.tensor as at, fixed_modes
        >>> jax.config.update("jax_enable_x64", True)
        >>> x, i = at.dvector("x"), at.lscalar("i")
        >>> f = fixed_modes.jax_function([x, i], x[i])
        >>> values, flags = jax.jit(jax.vmap(f.checked, (None, 0)))(
        ...     jax.numpy.arange(3.0), jax.numpy.arange(4)
        ... )
        >>> flags.failed.ravel().tolist()
        [False, False, False, True]
        >>> flags.raise_first()
        Traceback (most recent call last):
            ...
        IndexError: index is out of bounds for axis 0 with size 3...
        """
        result, checks = self._compute(args)
        with enable_x64():
            failed = [jnp.any(flag) for flag in checks.failed]
            stacked = jnp.stack(failed) if failed else jnp.zeros((0,), bool)
        return result, Flags(stacked, tuple(map(_UsersError, checks.errors)))

    def _compute(self, args: Sequence[Any]) -> tuple[Any, Checks]:
        variables = self.fgraph.inputs
        if len(args) != len(variables):
            raise TypeError(
                f"This function takes {self._n_inputs} inputs and the values of "
                f"{len(self.shared)} shared variables ({self._names()}), not {len(args)} arguments"
            )
        self._check_precision()
        with enable_x64():
            values = [_value(*pair) for pair in zip(variables, args)]
            found, checks = self._run(values)
            checks.unpack()
            results = [_result(*pair) for pair in zip(self.fgraph.outputs, found)]
            if self._updated is None:
                return (results[0] if self._is_single else results), checks
            n_outputs = len(results) - len(self._updated)
            outputs = results[0] if self._is_single else results[:n_outputs]
            kept = [_result(*p) for p in zip(variables, values)]
            state = [
                results[self._updated[i]] if i in self._updated else kept[self._n_inputs + i]
                for i in range(len(self.shared))
            ]
            return (outputs, state), checks

    def shared_values(self) -> list[Any]:
        """Give the values that the shared variables have now, as arguments.

        A random generator's is its key: uint32, shape (2,).
        """
        values = [variable.get_value(borrow=True) for variable in self.shared]
        return [
            np.asarray(key_from_rng(value).data)
            if isinstance(variable.type, RandomType)
            else np.array(value)
            for variable, value in zip(self.shared, values)
        ]

    def store(self, state: Sequence[Any]) -> None:
        """Put values, such as a call gave them, into the shared variables.

        Of a key a new generator is made, unless it is the key of the old one.
        """
        for variable, value in zip(self.shared, state):
            if isinstance(variable.type, RandomType):
                old = variable.get_value(borrow=True)
                key = key_from_rng(old)
                new = RandomKey(np.asarray(_key_data(value)), key.bit_generator, key.legacy)
                variable.set_value(rng_from_key(new, {key.data.tobytes(): old}), borrow=True)
            else:
                variable.set_value(np.array(value), borrow=True)

    def _run(self, values: Sequence[Any]) -> tuple[list[Any], Checks]:
        inputs = self.fgraph.inputs
        frame = Frame(inputs, dict(zip(inputs, values)), settings=self._settings)
        try:
            outputs = evaluate(frame, self.fgraph.outputs)
        except NeedsConcrete as need:
            raise _unknown(need, frame.traced_sources(need.variables)) from None
        except NeedsEager as need:
            raise _cut(need) from None
        return outputs, frame.checks

    def _check_precision(self) -> None:
        if jax.config.jax_enable_x64:
            return
        switch = 'jax.config.update("jax_enable_x64", True)'
        if jax.version.__version_info__[:3] < MIXES_PRECISIONS:
            raise TypeError(
                f"With JAX {jax.__version__} this function needs {switch}; newer versions need it "
                "only for graphs with types of 64 bits"
            )
        for variable in (*self.fgraph.inputs, *self.fgraph.outputs):
            if getattr(variable.type, "dtype", "") in _WIDE:
                raise TypeError(
                    f"{variable} is {variable.type.dtype}, which JAX has only with {switch}. "
                    "Or make the graph with narrower types (floatX=float32)."
                )

    def _names(self) -> str:
        return ", ".join(str(variable) for variable in self.shared) or "none"


Updates = Union[Mapping[Variable, Variable], Sequence[tuple[Variable, Variable]]]


def jax_function(
    inputs: Sequence[Variable],
    outputs: Variable | Sequence[Variable],
    updates: Updates | None = None,
    mode: Any = "JAX_FIXED",
) -> JAXFunction:
    """Make a pure JAX function of an Aesara graph, for `jax.jit`, `jax.grad` and `jax.vmap`.

    The graph is rewritten as for ``aesara.function``; nothing is compiled before
    JAX is asked to.

    Parameters
    ----------
    inputs
        The inputs of the graph.
    outputs
        A variable, or several.
    updates
        New values of shared variables, as for ``aesara.function``; an empty
        mapping if there are only those that random variables come with.
    mode
        A mode with the linker of ``JAX_FIXED``.

    Returns
    -------
    A function that is called with a value for each input, and then with one for
    each shared variable of the graph: these are listed in its attribute
    ``shared``, and its method ``shared_values()`` gives their present values.  It
    gives a JAX array or, for several outputs, a list.  With `updates` it gives a
    pair: that, and a list of the values of all shared variables after the call,
    which are the arguments for the next one.  Its method ``store`` puts such a
    list into the shared variables.

    A random generator's value is a key as `jax.random.key_data` gives it: uint32,
    shape (2,).  As an argument a typed key (`jax.random.key`) does as well.

    Small integers that are no JAX arrays are known while JAX traces: a number
    that a shape depends on is to be a Python int.

    Raises
    ------
    UnsupportedOpError
        When the function is called or traced, if the graph is no single JAX
        function: an op has to run in Python, or a shape depends on data.
    TypeError
        When it is called, if JAX has types of 64 bits switched off and the graph's
        inputs, shared variables or outputs have such a type, or JAX is older than
        0.4.36.

    Notes
    -----
    A pure function can't raise: a failed `Assert`, an index out of bounds, an integer
    division by zero or, in a loop, lengths that change and do not fit do only where the
    function is called outside of `jax.jit` and the like.  Within, a value of no meaning
    comes back, as from JAX itself (an index is clamped); the method ``checked`` gives a
    pair of the result and of flags that say which checks failed, and have a method
    ``raise_first()``.  Loops with an ``until`` have no derivative in reverse mode in JAX.

    Examples
    --------
    >>> import jax, aesara, aesara.tensor as at, fixed_modes
    >>> jax.config.update("jax_enable_x64", True)
    >>> x, rate = at.dscalar("x"), aesara.shared(0.5, name="rate")
    >>> powers, _ = aesara.scan(
    ...     lambda x, rate: x * rate, outputs_info=[x], non_sequences=[rate], n_steps=3
    ... )
    >>> f = fixed_modes.jax_function([x], powers[-1])
    >>> f.shared
    [rate]
    >>> float(f(8.0, 0.5)), float(jax.jit(f)(8.0, *f.shared_values()))
    (1.0, 1.0)
    >>> float(jax.grad(f, argnums=1)(8.0, 0.5))
    6.0
    >>> jax.vmap(f, in_axes=(0, None))(jax.numpy.arange(3.0), 0.5).tolist()
    [0.0, 0.125, 0.25]
    """
    is_single = isinstance(outputs, Variable)
    targets = [outputs] if is_single else list(outputs)
    new_values: dict[Variable, Variable] = dict(updates or {})
    for variable in list(new_values):
        if not isinstance(variable, SharedVariable):
            raise TypeError(f"Only shared variables are updated, and {variable} is none")
    shared = _shared_variables([*targets, *new_values.values()], list(new_values), inputs)
    if updates is not None:
        for variable in shared:
            if getattr(variable, "default_update", None) is not None:
                new_values.setdefault(variable, variable.default_update)
        shared = _shared_variables([*targets, *new_values.values()], shared, inputs)
    stand_ins = [variable.type(name=variable.name) for variable in shared]
    updated = [variable for variable in shared if variable in new_values]
    results = [*targets, *(_as_type(v, new_values[v]) for v in updated)]
    function = aesara.function(
        [*inputs, *stand_ins],
        [aesara.Out(result, borrow=True) for result in results],
        givens=dict(zip(shared, stand_ins)),
        mode=mode,
        on_unused_input="ignore",
        no_default_updates=True,
    )
    positions = {shared.index(v): len(targets) + i for i, v in enumerate(updated)}
    return JAXFunction(
        function.maker.fgraph,
        shared,
        is_single,
        None if updates is None else positions,
        Settings.from_flags(),
    )


def _shared_variables(
    outputs: Sequence[Variable], first: Sequence[Variable], inputs: Sequence[Variable]
) -> list[SharedVariable]:
    found = [*first, *(v for v in graph_inputs(outputs) if isinstance(v, SharedVariable))]
    return [v for v in dict.fromkeys(found) if v not in inputs]


def _as_type(variable: Variable, value: Any) -> Variable:
    """Give a new value the type of its shared variable, as ``aesara.function`` does."""
    return variable.type.filter_variable(value, allow_convert=True)


def _value(variable: Variable, value: Any) -> Any:
    """Make of an argument what the evaluation of a graph takes."""
    if isinstance(variable.type, RandomType):
        return RandomKey(_key_data(value), np.random.PCG64, False)
    dtype = np.dtype(variable.type.dtype)
    if isinstance(value, (bool, int, np.ndarray, np.generic)) and dtype.kind in "iub":
        array = np.asarray(value)
        if array.dtype.kind in "iub" and array.size <= LARGEST_KNOWN:
            return array.astype(dtype)
    array = jnp.asarray(value)
    if array.ndim != variable.type.ndim:
        raise TypeError(f"{variable} has {variable.type.ndim} dimensions, not {array.ndim}")
    return array.astype(dtype)


def _result(variable: Variable, value: Any) -> Any:
    if isinstance(value, RandomKey):
        return value.data
    if isinstance(value, PaddedTrace):
        if isinstance(value.length, jax.core.Tracer):
            raise UnsupportedOpError(
                f"The length of {variable}, what an until loop has run, is known only when the "
                "function runs: it can't be an output of a function that JAX traces"
            )
        return value.cut(int(value.length))
    return jnp.asarray(value)


def _key_data(value: Any) -> Any:
    if jnp.issubdtype(getattr(value, "dtype", None), jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    key = jnp.asarray(value)
    if key.shape != (2,) or key.dtype.kind not in "iu":
        raise TypeError("A random generator's value is a key: two integers, or a jax.random.key")
    return key.astype("uint32")


def _unknown(need: NeedsConcrete, sources: Sequence[Variable]) -> Exception:
    text = f"{need.reason} must be known while JAX traces, and depends on "
    text += ", ".join(map(str, sources))
    if all(getattr(v.type, "dtype", "").startswith(("int", "uint", "bool")) for v in sources):
        text += ". Pass it as a Python int (see static_argnums of jax.jit)"
    else:
        text += ': this graph can\'t be one JAX function. aesara.function(..., mode="JAX_FIXED")'
        text += " cuts it in parts"
    return UnsupportedOpError(f"{text}.\n{need.where}")


def _cut(need: NeedsEager) -> Exception:
    return UnsupportedOpError(
        "This graph can't be one JAX function. aesara.function(..., "
        f'mode="JAX_FIXED") cuts it in parts: {need.reason}.\n{need.where}'
    )


@dataclass(frozen=True, eq=False)
class _UsersError:
    """Makes the error of a check; where a compiled function would be cut, it is refused."""

    error: Callable[[], Exception]

    def __call__(self) -> Exception:
        error = self.error()
        return _cut(error) if isinstance(error, NeedsEager) else error


def _raise_what_is_known(checks: Checks) -> None:
    for failed, error in zip(checks.failed, checks.errors):
        if not isinstance(failed, jax.core.Tracer) and np.any(failed):
            raise _UsersError(error)()
