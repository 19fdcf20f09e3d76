"""``doctor``: whether it works here, and if not, what is to be done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from importlib import metadata
from typing import Any

import click

from fixed_modes._version import __version__
from fixed_modes.cli.children import Job, Outcome, run_jobs
from fixed_modes.cli.console import make_console, new_table, show_progress
from fixed_modes.cli.flags import MODES, with_mode
from fixed_modes.cli.versions import Found, find_versions

#: What each mode imports besides Aesara.
_BACK_ENDS = {"NUMBA_FIXED": "numba llvmlite", "JAX_FIXED": "jax jaxlib"}


@dataclass(frozen=True)
class Remark:
    """Something that is not as it should be, and the command that helps, if one does."""

    text: str
    remedy: str = ""


@dataclass
class Findings:
    """All that ``doctor`` found out.

    Attributes
    ----------
    hook
        ``"active"``, ``"inactive"``, or ``"failed: ..."`` with a reason.
    modes
        For each mode, what became of the small scan.
    problems, warnings
        What the user should know; the verdict is good when there is no problem.
    """

    versions: list[Found]
    hook: str
    modes: dict[str, Outcome]
    problems: list[Remark] = field(default_factory=list)
    warnings: list[Remark] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        if self.problems:
            broken = [mode for mode, outcome in self.modes.items() if not outcome.ok]
            what = " and ".join(broken) + " can't be used here" if broken else "not all is well"
            return f"BROKEN: {what}."
        if self.warnings:
            return "OK: both modes work here, with a warning (see above)."
        return "OK: both modes work here."


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=180.0,
    show_default=True,
    help="Seconds that a check of a mode may take.",
)
@click.pass_context
def doctor(ctx: click.Context, as_json: bool, timeout: float) -> None:
    """Check this installation: versions, start-up hook, both modes.

    Every mode compiles and runs a small scan in a process of its own. The exit
    status is 0 when all is well and 1 when something is broken.
    """
    findings = examine(timeout)
    if as_json:
        click.echo(json.dumps(as_dict(findings), indent=2))
    else:
        _print(findings)
    ctx.exit(1 if findings.problems else 0)


def examine(timeout: float) -> Findings:
    """Look at everything; takes the seconds that Aesara needs to be imported thrice."""
    with show_progress(1 + len(MODES)) as progress:
        progress(0, "the start-up hook")
        hook = check_hook(timeout)
        modes = {}
        for step, mode in enumerate(MODES, start=1):
            progress(step, f"a small scan in {mode}")
            job = Job("fixed_modes.cli.probes:small_scan", {"mode": mode})
            (modes[mode],) = run_jobs([job], timeout)
    findings = Findings(find_versions(), hook, modes)
    _judge_versions(findings)
    _judge_hook(findings)
    _judge_modes(findings)
    return findings


def check_hook(timeout: float) -> str:
    """See whether a script that imports Aesara only can ask for a fixed mode."""
    flags = with_mode(os.environ.get("AESARA_FLAGS", ""), MODES[0])
    try:
        done = subprocess.run(
            [sys.executable, "-c", "import aesara; print('mode:', aesara.config.mode)"],
            env={**os.environ, "AESARA_FLAGS": flags},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return f"failed: importing Aesara took more than {timeout:g} s"
    if done.returncode == 0 and f"mode: {MODES[0]}" in done.stdout:
        return "active"
    last = [line.strip() for line in done.stderr.splitlines() if line.strip()][-1:]
    if last and MODES[0] in last[0]:
        # Aesara's complaint about a mode that it doesn't know.
        return "inactive"
    return f"failed: {last[0] if last else f'exit status {done.returncode}'}"


def _judge_versions(findings: Findings) -> None:
    for found in findings.versions:
        pip = f"pip install {_pip_requirement(found)}"
        if found.status == "missing":
            findings.problems.append(Remark(f"{found.name} is not installed.", pip))
        elif found.status == "unsupported" and found.name == "Python":
            findings.problems.append(
                Remark(f"Python {found.version} is not supported; use {found.supported}.")
            )
        elif found.status == "unsupported":
            text = f"{found.name} {found.version} is not supported, {found.supported} is."
            findings.problems.append(Remark(text, pip))
    slow = " and ".join(f"{v.name} {v.version}" for v in findings.versions if v.status == "slow")
    if slow:
        text = f"loops are slow with {slow}, by orders of magnitude, and 0.7.0 crashes in some."
        findings.warnings.append(Remark(text, 'pip install "jax<0.7" "jaxlib<0.7"'))


def _pip_requirement(found: Found) -> str:
    bounds = found.supported.replace(" ", "")
    return f'"{found.name}{bounds}"' if bounds[0] in "<>" else found.name


def _judge_hook(findings: Findings) -> None:
    if findings.hook == "active":
        return
    consequence = (
        f"AESARA_FLAGS=mode={MODES[0]} works only for scripts that import fixed_modes "
        "first, and for scripts that are started with `python -m fixed_modes run`."
    )
    if findings.hook == "inactive" and os.environ.get("FIXED_MODES_STARTUP") == "0":
        text = "FIXED_MODES_STARTUP=0 switches the start-up hook off: " + consequence
        findings.warnings.append(Remark(text))
    elif findings.hook == "inactive" and not _is_installed():
        text = "fixed-modes runs from a source tree, without its start-up hook: " + consequence
        findings.warnings.append(Remark(text, "pip install fixed-modes"))
    elif findings.hook == "inactive":
        text = "the start-up hook is not active: " + consequence
        remedy = "pip install --force-reinstall --no-deps fixed-modes"
        findings.problems.append(Remark(text, remedy))
    else:
        text = (
            f"Aesara can't be imported with AESARA_FLAGS=mode={MODES[0]}, so the start-up "
            f"hook could not be checked ({findings.hook}). See what this says:"
        )
        findings.problems.append(Remark(text, 'python -c "import aesara"'))


def _is_installed() -> bool:
    try:
        metadata.version("fixed-modes")
    except metadata.PackageNotFoundError:
        return False
    return True


def _judge_modes(findings: Findings) -> None:
    for mode, outcome in findings.modes.items():
        findings.warnings += [Remark(f"{mode}: {warning}") for warning in outcome.warnings]
        if outcome.ok:
            continue
        text = f"{mode} does not work: {outcome.error.rstrip('.')}."
        if outcome.error.startswith(("ImportError", "ModuleNotFoundError")):
            remedy = f"pip install --force-reinstall {_BACK_ENDS[mode]}"
        else:
            text += " If the versions above are supported, report it together with this:"
            remedy = "python -m fixed_modes doctor --json"
        findings.problems.append(Remark(text, remedy))


def as_dict(findings: Findings) -> dict[str, Any]:
    """Return what ``--json`` prints."""
    return {
        "fixed_modes": __version__,
        "ok": not findings.problems,
        "verdict": findings.verdict,
        "versions": [asdict(found) for found in findings.versions],
        "hook": findings.hook,
        "modes": {
            mode: {"ok": outcome.ok, "error": outcome.error, "details": outcome.details}
            for mode, outcome in findings.modes.items()
        },
        "problems": [asdict(remark) for remark in findings.problems],
        "warnings": [asdict(remark) for remark in findings.warnings],
    }


def _print(findings: Findings) -> None:
    console = make_console()
    console.print(f"fixed-modes {__version__}")
    console.print()

    table = new_table("Needed", "Found", "Supported", "Verdict")
    for found in findings.versions:
        table.add_row(found.name, found.version or "-", found.supported, found.status)
    console.print(table)

    table = new_table("Check", "Result")
    table.add_row("start-up hook", findings.hook)
    for mode, outcome in findings.modes.items():
        result = f"works ({outcome.value['seconds']:.1f} s)" if outcome.ok else "does not work"
        table.add_row(f"a small scan in {mode}", result)
    console.print(table)

    for label, style, remarks in (
        ("warning", "yellow", findings.warnings),
        ("problem", "red", findings.problems),
    ):
        for remark in remarks:
            console.print(f"{label}: {remark.text}", style=style)
            if remark.remedy:
                # Never wrapped: it is there to be copied.
                console.print(f"    {remark.remedy}", soft_wrap=True)
            console.print()
    console.print(findings.verdict, style="bold red" if findings.problems else "bold green")
