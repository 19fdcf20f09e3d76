"""The command line of fixed_modes.

Modules here import Aesara, Numba and JAX only inside functions: ``--help`` and
``--version`` have to answer at once, and ``run`` has to set the mode before
Aesara is imported.
"""
