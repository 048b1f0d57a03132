"""The verdict of parity-step on a terminal; which causes hold."""

from __future__ import annotations

from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..mappings import table
from ..parity.compare_traces import SIDES
from ..parity.result import Cause, Finding, Report
from ..parity.tensor_verdict import RATIO, Unjudged, Verdict
from ..printable import MANNER
from .terminal import Console, one_line

# What to do where something was not judged that should have been.
REMEDIES = {
    Unjudged.NOISE: "use a larger batch (--batch), other data (--batch-file) or trained weights (--ckpt), which "
    "amplify rounding less",
    Unjudged.NOT_FINITE: "give torch's step data and weights on which it stays finite, or a smaller loss scale",
    Unjudged.NOT_COMPILED_ALIKE: "prove the compiled step without amp",
    Unjudged.KINKS: "compare each of the two with torch's half, which takes their choices: record torch --with each",
    Unjudged.DRAWS: "draw with functions whose numbers can be fixed, or prove the step without --mode graph",
    Unjudged.STORAGE: "prove the step with a larger learning rate: float32 loses all of what this one changes",
    Unjudged.FEW_VALUES: "draw more values: --init-seeds 10",
    Unjudged.NOT_ALONE: "see in the notes what torch says about these modules",
}


def unproven_sentence(findings: list[Finding]) -> str:
    """How many tensors that should have a verdict have none, and in which stages."""
    stages = ", ".join(dict.fromkeys(finding.stage for finding in findings))
    what = (
        "1 tensor that should have a verdict has"
        if len(findings) == 1
        else f"{len(findings)} tensors that should have a verdict have"
    )
    return f"nothing failed, but {what} none ({stages})"


def remedies(findings: list[Finding]) -> list[str]:
    """What to do about tensors that should have been judged and were not, each once."""
    kinds = dict.fromkeys(finding.unjudged for finding in findings)
    return [REMEDIES[kind] for kind in kinds if kind in REMEDIES]


def where(report: Report) -> str:
    """What follows the word parity: nothing for the whole step, ` in forward and gradients` for a part of it."""
    return "" if report.narrowing.whole else f" in {report.narrowing.said()}"


def of_what(report: Report) -> str:
    """What a ratio is, in words."""
    if report.sides == SIDES:
        return "error over torch's own noise, both from fp64"
    return f"error over the noise of {report.sides[0]}"


def explains(cause: Cause) -> bool:
    """Whether a cause is a hypothesis that holds, and not only a place; not every such cause is a known fault."""
    return cause.fault is not None or (cause.ratio is not None and cause.ratio <= RATIO)


def known(cause: Cause) -> str | None:
    """The id of the fault that `msmigrate explain` has a page for; None where no known fault holds, and where a report
    of another version names one that this version does not know."""
    return cause.fault if cause.fault in table.faults() else None


def also_at(cause: Cause, places: list[str]) -> str:
    """The further places of one mistake: 2 more BatchNorm2d: layer1.bn1, layer1.bn2."""
    kind = f" {cause.kind}" if cause.kind else ""
    return f"{len(places)} more{kind}: {', '.join(places)}" if places else ""


STYLES = {Verdict.PASS: "green", Verdict.FAIL: "bold red", Verdict.NONE: "yellow"}
WORST = 5


def show(report: Report, console: Console, worst: int = WORST) -> None:
    """Print the verdict, where the two first diverge and why; then a line a stage, the worst tensors, and notes."""
    versions = ", ".join(f"{name} {version}" for name, version in sorted(report.versions.items()))
    console.print(one_line(f"{report.recipe} (recipe {report.recipe_digest}); {versions}"))
    if not all(device.is_cpu for device in report.devices):
        console.print(one_line("; ".join(f"{side} on {device}" for side, device in report.computed_on.items())))
    if report.parity:
        undecided = sum(stage.undecided for stage in report.stages)
        have = "1 tensor has" if undecided == 1 else f"{undecided} tensors have"
        unless = f"; by nature {have} no verdict" if undecided else ""
        scope = " in six stages" if report.narrowing.whole else ""
        not_judged = f"; {report.narrowing.left_out()}" if report.narrowing.left_out() else ""
        verdict = Text.assemble(("Parity", "bold green"), where(report))
        console.print(verdict.append(f": {_count(report)} tensors compared{scope}{unless}{not_judged}."))
    else:
        _explain(report, console, worst)
    console.print(_stages(report))
    _worst(report, console, worst)
    _undecided(report, console, worst)
    for note in () if MANNER.quiet else report.notes:
        console.print(one_line(f"Note: {note}."))
    if report.seconds is not None:
        console.print(f"{report.seconds:.0f} s")


def _stages(report: Report) -> Table:
    caption = f"ratio: {of_what(report)}; above {RATIO:g} a tensor fails"
    table = Table(caption=caption, caption_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in ("stage", "verdict"):
        table.add_column(heading, no_wrap=True)
    # two lines a heading, so that 80 columns hold every name and number whole
    for heading in ("passed", "failed", "no\nverdict", "median\nratio", "largest\nratio", "largest\nerror"):
        table.add_column(heading, justify="right", no_wrap=True)
    for s in report.stages:
        nothing = s.passed + s.failed + s.undecided == 0
        table.add_row(
            s.stage,
            Text("no tensors" if nothing else s.verdict.value, STYLES[s.verdict]),
            str(s.passed),
            str(s.failed),
            str(s.undecided),
            _number(s.median_ratio),
            _number(s.max_ratio),
            _number(s.max_error),
        )
    return table


PARTS = {  # of a place, in words
    "given gradients": "the optimizer on gradients that both sides were given",
    "given overflows": "the optimizer on gradients that overflow, which both sides were given",
    "given weights ema": "the moving average of weights that both sides were given",
    "given logits": "the loss on logits that both sides were given",
    "alone": "each module by itself, on torch's inputs and upstream gradients; (model) is the whole net",
    "wiring": "what modules hand on to each other; each one's outputs are torch's, and its gradients made up",
    "distribution": "what new nets' weights are drawn from",
}


def _explain(report: Report, console: Console, worst: int) -> None:
    first = report.first_divergence
    not_judged = f" ({report.narrowing.left_out()})" if report.narrowing.left_out() else ""
    if first is None:
        missing = report.unproven
        empty = [stage.stage for stage in report.stages if not stage.passed + stage.failed + stage.undecided]
        why = unproven_sentence(missing) if missing else f"nothing was compared in {', '.join(empty)}"
        console.print(Text.assemble((f"Unproven{where(report)}", "bold yellow"), f"{not_judged}: {why}."))
        for text in remedies(missing):
            console.print(Padding(Text(f"to do: {text}"), (0, 0, 0, 6)))
        return
    verdict = Text.assemble((f"No parity{where(report)}", "bold red"), not_judged)
    console.print(verdict.append(". First divergence: ").append(one_line(first.place, "bold")))
    layer = f" ({first.module}, shape {list(first.shape)})" if first.module else f" (shape {list(first.shape)})"
    console.print(one_line(f"  {first.why}{layer}"))
    for part, words in PARTS.items():
        if f"{first.part} ".startswith(f"{part} "):
            console.print(one_line(f"  {part}: {words}"))
    _causes(report, console, worst)
    for hint in () if report.causes else report.hints:
        console.print(one_line(f"  known pitfall here: {hint}"))


def _causes(report: Report, console: Console, most: int) -> None:
    """What explains the failures, best first, and the modules at fault that nothing explains."""
    mistakes = report.mistakes
    if mistakes:
        found = [cause for cause, _ in mistakes if explains(cause)]
        left = len(mistakes) - len(found)
        unexplained = f"; {left} without an explanation" if left else ""
        read = any(cause.ratio is None for cause in report.causes)  # from the nets or the weights, without a trial
        count = f"{len(found)} {'cause' if len(found) == 1 else 'causes'}"
        console.print(Text(f"{count}{'' if read else ', tried out in torch'}{unexplained}:", "bold"))
    for number, (cause, places) in enumerate(mistakes[:most], 1):
        page = f" [msmigrate explain {known(cause)}]" if known(cause) else ""
        console.print(Text.assemble(f"{number:>2} ", (cause.place or "(model)", "bold"), f": {cause.text}{page}"))
        for title, text in (("the same at", also_at(cause, places)), ("fix", cause.fix), ("evidence", cause.evidence)):
            if text:
                console.print(Padding(Text(f"{title}: {text}"), (0, 0, 0, 6)))
    if len(mistakes) > most:
        console.print(f"  and {len(mistakes) - most} more causes (--worst N, --json FILE)")
    explained = {cause.place for cause in report.causes}
    own = [module for module in report.modules if module.own and module.name not in explained]
    for module in own[:most]:
        console.print(one_line(f"  at fault: {module.name or '(model)'} ({module.kind}): {module.why}"))
    if len(own) > most:
        console.print(f"  and {len(own) - most} more modules at fault")


def _worst(report: Report, console: Console, worst: int) -> None:
    failed = [f for f in report.findings if f.verdict is Verdict.FAIL]
    failed.sort(key=lambda f: f.ratio if f.ratio is not None else float("inf"), reverse=True)
    shown: dict[str | int, Finding] = {}
    for f in failed:  # a tensor that one side lacks fails wherever it should have been compared, for one reason
        shown.setdefault(f.order if f.unlike is None else f.why, f)
    listed = [*shown.values()][:worst]
    if listed:
        _list(console, "Worst of the failed tensors:", listed)
    if len(failed) > len(listed):
        console.print(f"  and {len(failed) - len(listed)} more (--json FILE has all)")


def _undecided(report: Report, console: Console, worst: int) -> None:
    missing = report.unproven
    known = set(missing)
    natural = [f for f in report.findings if f.verdict is Verdict.NONE and f not in known]
    for title, found in (
        ("Without the verdict that they should have:", missing),
        ("Without a verdict by nature:", natural),
    ):
        if found:
            _list(console, title, found[:worst])
        if len(found) > worst:
            console.print(f"  and {len(found) - worst} more (--json FILE has all)")


def _list(console: Console, title: str, findings: list[Finding]) -> None:
    """Two lines a tensor: names and reasons are long, and a table would break them at any width."""
    console.print(Text(title))
    for f in findings:
        ratio = f"  ratio {_number(f.ratio)}" if f.ratio is not None else ""
        console.print(one_line(f"  {f.place}{ratio}"))
        console.print(Padding(one_line(f.why), (0, 0, 0, 6)))


def _count(report: Report) -> int:
    return sum(f.verdict is Verdict.PASS for f in report.findings)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if value == 0.0 or 0.01 <= abs(value) < 1000:
        return f"{value:.2f}"
    return f"{value:.1e}"
