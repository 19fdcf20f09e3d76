"""All graphs of the benchmarks: the process that finds a full cache compiles and traces nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import fixed_modes
from benchmarks.workloads import NAMES
from tests.jax_versions import needs_storing

INSTALLED_IN = Path(fixed_modes.__file__).parents[1]

RUN = """
import json, sys, warnings
warnings.simplefilter("ignore")
import aesara, fixed_modes
import numpy as np
from benchmarks.namespaces import load_namespace
from benchmarks.workloads import load

mode, names = sys.argv[1], sys.argv[2].split(",")
ns = load_namespace("aesara")
graphs = {name: load(name).build(ns) for name in names}

compiled, processes = [], []
if mode == "NUMBA_FIXED":
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event):
            compiled.append(str(event.data["dispatcher"]))

        def on_end(self, event):
            pass

    event.register("numba:compile", Listener())
else:
    import jax

    jax.config.update("jax_enable_x64", True)

    # Tracing counts as well.
    notable = "/jax/core/compile/jaxpr_trace_duration", "/jax/core/compile/backend_compile_duration"

    def note(event, duration, **details):
        if event in notable:
            compiled.append(f"{event} {details}")

    jax.monitoring.register_event_duration_secs_listener(note)
sys.addaudithook(
    lambda event, arguments: processes.append(repr(arguments)) if event == "subprocess.Popen" else 0
)

reports, results = {}, {}
for name, graph in graphs.items():
    workload = load(name)
    f = aesara.function(
        list(graph.inputs), list(graph.outputs), updates=dict(graph.updates), mode=mode
    )
    if graph.generator is not None:
        graph.generator.set_value(workload.generator())
    for shared, value in zip(graph.state, workload.state("tiny")):
        shared.set_value(value)
    values = f(*workload.inputs("tiny"))
    results[name] = [np.asarray(value).tolist() for value in values]
    reports[name] = fixed_modes.cache_report(f)
print(json.dumps([compiled, processes, reports, results]))
"""


def run(mode: str, place: Path, hash_seed: str) -> Any:
    flags = f"{os.environ['AESARA_FLAGS']},fixed_modes__cache=True,fixed_modes__cache_dir={place}"
    process = subprocess.run(
        [sys.executable, "-c", RUN, mode, ",".join(NAMES)],
        env={
            **os.environ,
            "PYTHONPATH": str(INSTALLED_IN),
            "AESARA_FLAGS": flags,
            "PYTHONHASHSEED": hash_seed,
        },
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    # Libraries may print lines before ours.
    return json.loads(process.stdout.splitlines()[-1])


def expect_nothing_to_do(mode: str, place: Path) -> None:
    compiled, _, _, first = run(mode, place, "1")
    assert len(compiled) >= 20
    # Another order of sets, so that nothing may hang on it.
    compiled, processes, reports, second = run(mode, place, "2")
    assert compiled == []
    assert processes == []
    for name in NAMES:
        assert reports[name] == ["graph loaded", "loaded"], name
        assert second[name] == first[name], name


def test_numba_compiles_nothing(tmp_path: Path) -> None:
    expect_nothing_to_do("NUMBA_FIXED", tmp_path)


@needs_storing
def test_jax_compiles_nothing(tmp_path: Path) -> None:
    expect_nothing_to_do("JAX_FIXED", tmp_path)
