"""Keeps compiled code on disk, for the next process that compiles the same graph.

* `key` describes Python values exactly, or says that it can't;
* `place` finds the directory and decides whether it can be trusted;
* `store` holds entries, bytes under a key, in that directory;
* `graphs` keeps what Aesara's rewrites make of a graph: `graph_key` describes graphs,
  `registry` the rewrites, and `graph_record` writes graphs down;
* `warned` notes whether anything warns, which must be said in every process.

What of compiled code is stored and when it has a key is up to each back end
(``fixed_modes/numba/cache.py``; ``fixed_modes/jax/cache.py`` and ``untraced.py``).
"""
