"""Queries of the rewrite database: which rewrites an inner graph gets."""

from __future__ import annotations

import sys

from aesara.graph.rewriting.basic import in2out
from aesara.graph.rewriting.db import RewriteDatabaseQuery

from fixed_modes.rewrites.arrays import with_array_rewrites
from fixed_modes.rewrites.branches import with_branch_rewrites
from fixed_modes.rewrites.complex_constants import with_safe_complex
from fixed_modes.rewrites.conditional import with_conditional_rewrites
from fixed_modes.rewrites.elements import with_element_rewrites
from fixed_modes.rewrites.guards import with_guards
from fixed_modes.rewrites.inline import inline_every_ofg
from fixed_modes.rewrites.lift import with_safe_lift
from fixed_modes.rewrites.scan import with_safe_scan_rewrites
from fixed_modes.rewrites.special import with_special_rewrites

# Tags that come with `aesara.tensor.nnet`, which Aesara does not import by itself.
_OF_NEURAL_NETWORKS = {"conv_opts", "AbstractConvCheck"}

#: The rewrites of both modes.  The C-only, BLAS and sparse product rewrites make ops
#: that only the C back end profits from; those of convolutions too, and what they leave
#: is refused by a check.
DEFAULT_REWRITES = RewriteDatabaseQuery(
    include=["fast_run"],
    exclude=["cxx_only", "BlasOpt", "conv_opts", "AbstractConvCheck", "local_usmm"],
)

#: XLA fuses what is elementwise by itself, and has no arrays to write into; the two
#: rewrites take a quarter of the time of all.
JAX_REWRITES = DEFAULT_REWRITES.excluding("fusion", "inplace_elemwise_optimizer")

_INLINE = "inline_ofg_expansion"
# Where Aesara registers its own expansion: before the first merge.
_INLINE_POSITION = -0.01


def combine(enclosing: RewriteDatabaseQuery, own: RewriteDatabaseQuery) -> RewriteDatabaseQuery:
    """Give the rewrites of the enclosing mode, with what a scan's own mode adds.

    What one of the two excludes or requires is excluded or required.
    """
    return RewriteDatabaseQuery(
        include=enclosing.include.union(own.include),
        require=enclosing.require.union(own.require),
        exclude=enclosing.exclude.union(own.exclude),
        subquery={**enclosing.subquery, **own.subquery},
        position_cutoff=min(enclosing.position_cutoff, own.position_cutoff),
        extra_rewrites=[
            *enclosing.extra_rewrites,
            *(extra for extra in own.extra_rewrites if extra not in enclosing.extra_rewrites),
        ],
    )


def _without_unknown(query: RewriteDatabaseQuery) -> RewriteDatabaseQuery:
    """Leave out tags of which Aesara does not know yet.

    Its database keeps a tag that was asked for, and refuses a rewrite that is registered
    under it later: the import of `aesara.tensor.nnet` would fail then.
    """
    if "aesara.tensor.nnet" in sys.modules:
        return query
    return RewriteDatabaseQuery(
        include=query.include,
        require=query.require,
        exclude=query.exclude - _OF_NEURAL_NETWORKS,
        subquery=query.subquery,
        position_cutoff=query.position_cutoff,
        extra_rewrites=query.extra_rewrites,
    )


def with_own_rewrites(query: RewriteDatabaseQuery) -> RewriteDatabaseQuery:
    """Add the rewrites of this package that `query` asks for, and leave out faulty ones.

    A mode that names ``inline_ofg_expansion`` itself means every
    `OpFromGraph`; Aesara's rewrite of that name, which is part of ``fast_run``,
    leaves those that were made with ``inline=False``.
    """
    query = _without_unknown(query)
    if _INLINE in query.include and _INLINE not in query.exclude:
        inline = in2out(inline_every_ofg, name="inline_every_ofg")
        query = query.register((inline, _INLINE_POSITION))
    query = with_safe_complex(with_safe_lift(with_safe_scan_rewrites(query)))
    query = with_element_rewrites(query)
    query = with_array_rewrites(with_conditional_rewrites(with_special_rewrites(query)))
    return with_guards(with_branch_rewrites(query))
