"""A graph as a list of steps: compiled segments, with steps that run by themselves between them.

Nearly always the list has one entry, the whole graph.  Where tracing stops at a
node with `NeedsEager`, the graph is cut there: what the node needs is computed
by one segment, the node runs by itself, with NumPy, and what it gives goes into
another segment.  JAX compiles that one anew for each new shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Union

import jax.numpy as jnp
import numpy as np
from aesara.compile.builders import OpFromGraph
from aesara.compile.ops import DeepCopyOp
from aesara.graph.basic import Apply, Constant, Variable, io_toposort
from aesara.graph.op import HasInnerGraph
from aesara.ifelse import IfElse
from aesara.scan.op import Scan
from aesara.tensor.type_other import SliceType

from fixed_modes.errors import UnsupportedOpError, describe_node
from fixed_modes.jax.eager import in_numpy, node_call, value_of
from fixed_modes.jax.frame import NeedsEager
from fixed_modes.jax.graph_names import GraphNames
from fixed_modes.jax.kinds import is_foreign
from fixed_modes.jax.lazy import schedule
from fixed_modes.jax.notices import say_slow
from fixed_modes.jax.padded import PaddedTrace
from fixed_modes.jax.settings import Settings
from fixed_modes.jax.variants import Variant, run_variant

#: Rather than to run these by themselves, what they need is computed before.
COMPILED_IF_POSSIBLE = (HasInnerGraph, IfElse)


class Segment(NamedTuple):
    """What a `Variant` must know of a graph."""

    inputs: Sequence[Variable]
    outputs: Sequence[Variable]


class CompiledStep:
    """A part of a graph that is compiled as a whole."""

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        settings: Settings,
        names: GraphNames | None = None,
    ) -> None:
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.max_variants = settings.max_variants
        self.variants = Variant(Segment(self.inputs, self.outputs), {}, settings, names)

    def run(self, args: Sequence[Any]) -> list[Any]:
        return run_variant(self.variants, args, self.max_variants)


class NodeStep:
    """A node that runs by itself."""

    def __init__(self, node: Apply, settings: Settings, names: GraphNames | None = None) -> None:
        self.node, self.settings = node, settings
        self.inputs = [v for v in dict.fromkeys(node.inputs) if not isinstance(v, Constant)]
        self.outputs = node.outputs
        if isinstance(node.op, OpFromGraph):
            fgraph = node.op.fgraph
            inner = None if names is None else names.inner(node)
            self.call: Any = SegmentedGraph(fgraph.inputs, fgraph.outputs, settings, inner).run
        else:
            self.call = node_call(node, settings, ())
        variables = (*node.inputs, *node.outputs)
        self.is_foreign = any(is_foreign(v.type) for v in variables)

    def run(self, args: Sequence[Any]) -> list[Any]:
        if self.is_foreign and not isinstance(self.node.op, DeepCopyOp):
            text = "JAX has no type for what this op takes or gives, and it runs in Python"
            say_slow(self.node, self.settings, f"{text}.\n{describe_node(self.node)}")
        found = dict(zip(self.inputs, args))
        return self.call([in_numpy(value_of(variable, found)) for variable in self.node.inputs])


class IfElseStep:
    """An `IfElse` whose branches are graphs of their own; the one that is taken runs.

    Parameters
    ----------
    node
        The node.
    inputs
        Besides the condition, what the branches need.
    """

    def __init__(
        self,
        node: Apply,
        inputs: Iterable[Variable],
        settings: Settings,
        names: GraphNames | None = None,
    ) -> None:
        self.node = node
        self.branch_inputs = list(inputs)
        self.inputs = [*self.branch_inputs]
        if not isinstance(node.inputs[0], Constant):
            self.inputs.append(node.inputs[0])
        self.outputs = node.outputs
        count = node.op.n_outs
        self.branches = [
            SegmentedGraph(self.branch_inputs, side, settings, names)
            for side in (node.inputs[1 : 1 + count], node.inputs[1 + count :])
        ]

    def run(self, args: Sequence[Any]) -> list[Any]:
        condition = value_of(self.node.inputs[0], dict(zip(self.inputs, args)))
        branch = self.branches[0 if np.all(in_numpy(condition)) else 1]
        return branch.run(args[: len(self.branch_inputs)])


Step = Union[CompiledStep, NodeStep, IfElseStep]


class SegmentedGraph:
    """A graph as a function of the values of its inputs.

    Attributes
    ----------
    steps
        What has been found out so far.
    by_itself, cuts
        Nodes that no segment may hold, and variables that a segment must end with.
    names
        The names of the graph's variables, where it is known exactly.
    """

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        settings: Settings,
        names: GraphNames | None = None,
    ) -> None:
        self.inputs, self.outputs, self.settings = list(inputs), list(outputs), settings
        self.names = names
        self.by_itself: set[Apply] = set()
        self.cuts: set[Variable] = set()
        self.steps: list[Step] = self._plan(self.inputs)
        # The only step, where that is so, and the positions of its arguments.
        self.whole: tuple[Step, list[int]] | None = None
        if len(self.steps) == 1 and self.steps[0].outputs == self.outputs:
            step = self.steps[0]
            self.whole = (step, [self.inputs.index(variable) for variable in step.inputs])

    def run(self, args: Sequence[Any]) -> list[Any]:
        """Compute the outputs: JAX arrays that share no memory with `args`, keys and others."""
        if self.whole is not None and not any(type(arg) is PaddedTrace for arg in args):
            step, positions = self.whole
            try:
                return step.run([args[position] for position in positions])
            except NeedsEager as need:
                self.whole = None
                self.steps = self._refine([], need)
        return self._run_steps(args)

    def _run_steps(self, args: Sequence[Any]) -> list[Any]:
        found = dict(zip(self.inputs, args))
        steps, position = self.steps, 0
        while position < len(steps):
            step = steps[position]
            try:
                results = step.run([_settled(variable, found) for variable in step.inputs])
            except NeedsEager as need:
                steps = self._refine(steps[:position], need)
                self.steps = steps
                continue
            if step.outputs == self.outputs:
                return results
            found.update(zip(step.outputs, results))
            position += 1
        return [_as_result(value_of(variable, found)) for variable in self.outputs]

    def _refine(self, done: list[Step], need: NeedsEager) -> list[Step]:
        """Plan anew what comes after the steps that are done."""
        available = [*self.inputs, *(v for step in done for v in step.outputs)]
        node = need.node
        order = schedule(available, self.outputs).always
        to_cut = [v for v in need.variables if v.owner in order and v not in self.cuts]
        is_worth_it = need.is_padded or isinstance(getattr(node, "op", None), COMPILED_IF_POSSIBLE)
        if is_worth_it and to_cut and len(to_cut) == len(need.variables):
            self.cuts.update(to_cut)
        elif (
            need.is_window
            and isinstance(getattr(node, "op", None), Scan)
            and (self.settings.windows)
        ):
            # Once more, with slices of a length that changes in the place of windows.
            self.settings = replace(self.settings, windows=False)
        elif node is not None and node in order and node not in self.by_itself:
            if isinstance(node.op, Scan):
                text = "JAX_FIXED runs a loop step by step, in Python"
                say_slow(node, self.settings, f"{text}: {need.reason}.\n{need.where}")
            self.by_itself.add(node)
        else:
            raise UnsupportedOpError(f"JAX_FIXED can't run this: {need.reason}.\n{need.where}")
        return [*done, *self._plan(available)]

    def _plan(self, available: Sequence[Variable]) -> list[Step]:
        planner = Planner(available, self.outputs, self.by_itself, self.cuts)
        return planner.steps(self.settings, self.names)


def _as_result(value: Any) -> Any:
    return jnp.array(value) if isinstance(value, (np.ndarray, np.generic)) else value


def _settled(variable: Variable, found: dict[Variable, Any]) -> Any:
    value = found[variable]
    if isinstance(value, PaddedTrace):
        value = found[variable] = value.cut(int(value.length))
    return value


class Planner:
    """Sorts the nodes of a graph into segments.

    The *level* of a node is the number of cuts that must come before it.  Nodes
    of one level make a segment.

    Parameters
    ----------
    available
        Variables that have values.
    outputs
        Variables to be computed.
    by_itself, cuts
        As in `SegmentedGraph`; nodes that nothing can compile are added.
    """

    def __init__(
        self,
        available: Sequence[Variable],
        outputs: Sequence[Variable],
        by_itself: set[Apply],
        cuts: set[Variable],
    ) -> None:
        self.available, self.outputs = available, outputs
        self.by_itself, self.cuts = by_itself, cuts
        plan = schedule(available, outputs)
        self.order = io_toposort(available, outputs)
        self.always = set(plan.always)
        self.inside = {node: branch[0] for branch, nodes in plan.branches.items() for node in nodes}
        self._add_foreign_nodes()
        self.levels = self._levels()

    def root(self, node: Apply) -> Apply:
        """Give the outermost `IfElse` that a node belongs to, or the node itself."""
        while node in self.inside:
            node = self.inside[node]
        return node

    def _add_foreign_nodes(self) -> None:
        known = set(self.available)
        for node in self.order:
            foreign = any(is_foreign(v.type) for v in (*node.inputs, *node.outputs))
            # A slice is known while tracing only to the segment that makes it.
            sliced = any(
                isinstance(v.type, SliceType) and (v in known or v.owner in self.by_itself)
                for v in node.inputs
            )
            if foreign or sliced:
                self.by_itself.add(self.root(node))

    def _levels(self) -> dict[Apply, int]:
        reached: dict[Variable, int] = {}
        levels: dict[Apply, int] = {}
        for node in self.order:
            levels[node] = level = max((reached.get(v, 0) for v in node.inputs), default=0)
            for out in node.outputs:
                ends_segment = node in self.by_itself or out in self.cuts
                reached[out] = level + 1 if ends_segment else level
        return levels

    def steps(self, settings: Settings, names: GraphNames | None = None) -> list[Step]:
        """Make the steps, in order."""
        if not self.order:
            return []
        if not (self.by_itself & self.always) and not (self.cuts & self._computed()):
            # What is foreign goes past compiled code: no node here has to do with it.
            inputs = [v for v in self.available if not is_foreign(v.type)]
            outputs = [v for v in self.outputs if not is_foreign(v.type)]
            return [CompiledStep(inputs, outputs, settings, names)]
        result: list[Step] = []
        available = list(self.available)
        for level in range(max(self.levels.values(), default=0) + 1):
            nodes = [n for n in self.order if n in self.always and self.levels[n] == level]
            together = [n for n in nodes if n not in self.by_itself]
            outputs = [v for n in together for v in n.outputs if self._is_needed(v, level)]
            if outputs:
                inputs = self._needed_inputs(available, outputs)
                result.append(CompiledStep(inputs, outputs, settings, names))
                available += outputs
            alone = [n for n in nodes if n in self.by_itself]
            result += [self._single(node, available, settings, names) for node in alone]
            available += [v for node in alone for v in node.outputs]
        return result

    def _computed(self) -> set[Variable]:
        return {out for node in self.order for out in node.outputs}

    def _is_needed(self, variable: Variable, level: int) -> bool:
        """Say whether anything outside of the segment uses a variable."""
        if variable in self.outputs or variable in self.cuts:
            return True
        users = (self.root(node) for node in self.order if variable in node.inputs)
        return any(user in self.by_itself or self.levels[user] > level for user in users)

    def _needed_inputs(
        self, available: Sequence[Variable], outputs: Sequence[Variable]
    ) -> list[Variable]:
        used = {v for node in io_toposort(available, outputs) for v in node.inputs}
        return [v for v in dict.fromkeys(available) if v in used]

    def _single(
        self,
        node: Apply,
        available: Sequence[Variable],
        settings: Settings,
        names: GraphNames | None,
    ) -> Step:
        if not isinstance(node.op, IfElse):
            return NodeStep(node, settings, names)
        branches = node.inputs[1:]
        inputs = self._needed_inputs(available, branches)
        inputs += [v for v in dict.fromkeys(branches) if v in available and v not in inputs]
        return IfElseStep(node, inputs, settings, names)
