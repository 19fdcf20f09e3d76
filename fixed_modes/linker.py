"""What the two linkers share: inner graphs are compiled first, and errors name their op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

from aesara.graph.fg import FunctionGraph
from aesara.link.basic import Container, JITLinker
from aesara.link.utils import map_storage, raise_with_op
from aesara.tensor.type_other import NoneTypeT

from fixed_modes.errors import explained, origin_of
from fixed_modes.inner_graphs import compile_inner_graphs
from fixed_modes.maker import compiling
from fixed_modes.optional_inputs import optional_inputs, without_inputs
from fixed_modes.rewrites.query import DEFAULT_REWRITES


class InnerGraphLinker(JITLinker):
    """A `JITLinker` that compiles the inner graphs of the graph it is handed.

    Attributes
    ----------
    rewrites
        The rewrites of the enclosing mode: a `RewriteDatabaseQuery` or a
        `GraphRewriter`; the mode sets it.
    converted
        A graph that is known to be converted without a warning, if there is one.
    identity
        A graph and what tells it from all that are not equal to it, which is empty
        where that is not known.
    """

    rewrites: Any = DEFAULT_REWRITES
    converted: FunctionGraph | None = None
    identity: tuple[FunctionGraph | None, str] = (None, "")
    #: Tags of rewrites that this back end can't use; they are kept out of inner graphs.
    excluded_tags: tuple[str, ...] = ()

    def accept(
        self, fgraph: FunctionGraph, no_recycling: Any = None, profile: Any = None
    ) -> InnerGraphLinker:
        if self.fgraph is not None and self.fgraph is not fgraph:
            # The inherited method would make a linker with default options here.
            fresh = self.clone()
            fresh.fgraph = None
            return fresh.accept(fgraph, no_recycling, profile)
        return super().accept(fgraph, no_recycling, profile)

    def make_all(
        self, input_storage: Any = None, output_storage: Any = None, storage_map: Any = None
    ) -> tuple[Any, ...]:
        """Make the thunk of the whole graph and its containers.

        The stock method blames the first output's node for every error, and
        refuses graphs that compute nothing; otherwise this one does the same.
        """
        self.check_back_end()
        fgraph = self.fgraph
        self.finish(fgraph)
        order = self.schedule(fgraph)
        input_storage, output_storage, storage_map = map_storage(
            fgraph, order, input_storage, output_storage, storage_map
        )
        compute_map = {variable: [variable.owner is None] for variable in storage_map}
        thunks, nodes, jitted = self.create_jitable_thunk(
            compute_map, order, input_storage, output_storage, storage_map
        )
        run = _naming_errors(thunks[0], fgraph, nodes[0] if nodes else None, storage_map)
        optional = optional_inputs(fgraph)
        if optional:
            run = self._without_what_is_none(run, optional, input_storage, output_storage)
        run.jit_fn = jitted  # type: ignore[attr-defined]
        run.allow_gc = self.allow_gc  # type: ignore[attr-defined]
        run.storage_map = storage_map  # type: ignore[attr-defined]
        return (
            run,
            [Container(i, storage) for i, storage in zip(fgraph.inputs, input_storage)],
            [
                Container(o, storage, readonly=True)
                for o, storage in zip(fgraph.outputs, output_storage)
            ],
            thunks,
            nodes,
        )

    def _without_what_is_none(
        self,
        run: Callable[[], None],
        optional: list[int],
        input_storage: list[list[Any]],
        output_storage: list[list[Any]],
    ) -> Callable[[], None]:
        """Make the function that runs the graph with, or without, its optional inputs."""
        fgraph = self.fgraph
        # By the positions of what is None.
        thunks: dict[tuple[int, ...], Callable[[], None]] = {(): run}

        def run_what_is_there(output_subset: Sequence[int] | None = None) -> None:
            absent = tuple(i for i in optional if input_storage[i][0] is None)
            if absent not in thunks:
                with compiling:
                    linker = self.accept(without_inputs(fgraph, absent))
                    thunks[absent] = linker.make_all(input_storage, output_storage)[0]
            thunks[absent]()

        return run_what_is_there

    def finish(self, fgraph: FunctionGraph) -> bool:
        """Compile the inner graphs of a graph; says whether the back end can run it then.

        Done again, it changes nothing.
        """
        compile_inner_graphs(fgraph, self.rewrites, self.excluded_tags)
        return True

    def check_back_end(self) -> None:
        """Raise `ImportError`, saying what to install, where the back end is missing."""
        raise NotImplementedError


def _naming_errors(
    thunk: Any, fgraph: FunctionGraph, default: Any, storage_map: Any
) -> Callable[[], None]:
    """Make the function that runs `thunk`; an error gets Aesara's notes on its node."""

    def run(output_subset: Sequence[int] | None = None) -> None:
        # Aesara takes the subset from what is there: one compiled function gives all.
        try:
            thunk()
        except Exception as exc:
            for variable in filter(fgraph.clients.get, fgraph.inputs):
                # Aesara lets it pass for any type.
                if storage_map[variable][0] is None and not isinstance(variable.type, NoneTypeT):
                    raise TypeError(f"expected an array for {variable}, not None") from exc
            node = origin_of(exc)
            if node is not None:
                raise explained(exc, node).with_traceback(exc.__traceback__) from exc.__cause__
            if default is not None and len(fgraph.apply_nodes) == 1:
                raise_with_op(fgraph, default, thunk)
            raise

    return run
