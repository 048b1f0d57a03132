"""The sections of a recipe about what a step computes: loss, mixup, ema, sync_batchnorm, precision; and what its
backward pass starts from."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeGuard

from ...mappings import table
from ...mappings.aliases import row_of
from ...mappings.rows import Row
from ..library_names import is_library
from ..read_script.abstract_values import (
    LibraryName,
    LibraryObject,
    LibraryUse,
    ParsedArguments,
    ScriptModule,
    ScriptObject,
    Value,
    known,
)
from ..read_script.interpreter import CERTAINTIES, OPTION, PERHAPS, UNCALLED, Interpreter, joined
from .data_flow import Flow, Statement
from .optimizer_sections import part_section
from .passed_over import name_of, reason
from .recipe_entries import (
    AMP,
    ASK,
    EMA,
    MIXUP,
    SCALE,
    SYNC,
    Comment,
    Entry,
    by_sureness,
    calls,
    distinct,
    key_of,
    number,
    only_where,
    options,
    place,
    setting,
    settings,
    shown,
    sources,
    surely,
    unread,
)
from .relevance import named
from .roles import CRITERION, FUNCTIONAL, LOSS, Roles
from .trained_model import part_of, several_train, unwrapped
from .trainers import Given, not_found, words_of

TIMM_MIXUP_PLACES = {"mixup_alpha": 0, "cutmix_alpha": 1, "prob": 3, "switch_prob": 4, "label_smoothing": 7}
# timm's own defaults
TIMM_MIXUP = {"mixup_alpha": 1.0, "cutmix_alpha": 0.0, "prob": 1.0, "switch_prob": 0.5, "label_smoothing": 0.1}
AS_CROSS_ENTROPY = ("timm.loss.LabelSmoothingCrossEntropy", "timm.loss.SoftTargetCrossEntropy")


def loss(interpreter: Interpreter, flow: Flow, fit: Given | None) -> tuple[Entry, Any]:
    """The section `loss`, and its label smoothing, perhaps ???; only where the backward pass starts from one loss."""
    found = distinct([*surely(calls(interpreter, "loss")), *_loss_functions(interpreter)])
    returned = fit.losses() if fit is not None else []
    starts = [*_starts(flow), *(node for _, node in returned)]
    reaching = [seen for seen in found if starts_backward(_as_loss(flow, seen), starts)]
    if several_train(interpreter):
        return Entry("loss", ASK, ["several optimizers train; a recipe has one optimizer, and one loss"]), 0.0
    added = dict.fromkeys(one for seen in reaching for one in added_to_the_loss(_as_loss(flow, seen), starts))
    others = list(dict.fromkeys(other for seen in reaching for other in instead_of(seen, flow)))
    if len(reaching) != 1 or added or others:
        comments: list[str] = [f"{place(seen)}: a part of the loss" for seen in reaching]
        lines = {str(place(seen)).partition(":")[0] for seen in reaching}
        comments += [other for other in others if other.partition(":")[0] not in lines]
        for statement in added:
            file, line = statement.place
            comments.append(f"{file} line {line}: {statement.source.text(statement.node)}: more is added to it")
        return Entry("loss", ASK, comments or (fit and fit.starts()) or [unread_loss(flow)]), 0.0
    chosen = reaching[0]
    if known(chosen.get("reduction"), None) == "none":
        comments = [place(chosen), "it returns a number for each sample; statements that use these are listed"]
        return Entry("loss", ASK, comments), 0.0
    within = next(
        (made for made in interpreter.made if LOSSES.search(made.of.node.name) and _holds(made, chosen)), None
    )
    if within is not None and within.node is not None and within.source is not None:
        at = Comment((within.source.shown, within.node.lineno), within.source.text(within.node))
        return Entry("loss", ASK, [place(chosen), at, "a loss of the script's own that uses it"]), 0.0
    section, smoothing = _loss_section(interpreter, chosen)
    section.roots[id(chosen.node)] = FUNCTIONAL if "functional." in chosen.name else CRITERION
    own = flow.of[id(chosen.node)].node if id(chosen.node) in flow.of else None
    made = isinstance(own, ast.Assign) and own.value is chosen.node and "functional." not in chosen.name
    if returned and not made:
        section.comments = [str(one) for one in section.comments]  # its line is one of the step, which is listed
    ends = dict.fromkeys(str(Comment(one.place, shown(one.text))) for one, _ in returned)
    section.comments += [f"{one}: the Trainer differentiates this; how it comes about is listed" for one in ends]
    return section, smoothing


LOSSES = re.compile("loss|criterion", re.IGNORECASE)


def _holds(made: ScriptObject, chosen: LibraryUse) -> bool:
    values = (argument.value for argument in made.arguments)
    return any(isinstance(value, LibraryObject) and value.seen is chosen for value in map(unwrapped, values))


def _as_loss(flow: Flow, seen: LibraryUse) -> Roles:
    """The roles of the script's values where this is the loss."""
    return Roles(flow, {id(seen.node): FUNCTIONAL if "functional." in seen.name else CRITERION}, 1)


def _loss_section(interpreter: Interpreter, chosen: LibraryUse) -> tuple[Entry, Any]:
    row = _loss_row(chosen.name)
    if row is None or row.torch in AS_CROSS_ENTROPY:  # CrossEntropyLoss, its smoothing under another name
        given = setting(chosen, "smoothing", 0)
        amount = 0.1 if given is None else given
        soft = chosen.name.endswith("SoftTargetCrossEntropy")
        value: dict[str, Any] = {"name": "CrossEntropyLoss"}
        if not soft and amount:
            value["args"] = {"label_smoothing": amount}
        comments = [place(chosen), *([unread("smoothing")] if given == ASK else sources(chosen.get("smoothing", 0)))]
        return Entry("loss", value, comments), 0.0 if soft else amount
    if row.short == "NLLLoss" and any(seen.name.endswith(("log_softmax", "LogSoftmax")) for seen in interpreter.seen):
        comments = [place(chosen), "on log_softmax: the same as CrossEntropyLoss on the input of log_softmax"]
        return Entry("loss", {"name": "CrossEntropyLoss"}, comments), 0.0
    arguments = chosen.arguments or []
    taken = ("input", "target") if "functional." in chosen.name else ()  # a function's first arguments
    first = sum(name not in {argument.name for argument in arguments} for name in taken)
    settings = replace(chosen, arguments=arguments[first:])
    section = part_section("loss", settings, row)
    names_ = [argument.torch for argument in row.arguments]
    section.leave(chosen, *map(str, range(first + len(names_))), *taken, *names_)
    return section, setting(settings, "label_smoothing", 5) or 0.0


def _loss_functions(interpreter: Interpreter) -> list[LibraryUse]:
    """The functional losses of the script."""
    found = [s for s in interpreter.seen if s.arguments is not None and "functional." in s.name and _loss_row(s.name)]
    return surely(by_sureness(found))


def _loss_row(name: str) -> Row | None:
    row = row_of(name)
    if row is not None and row.kind == "loss":
        return row
    bare = name.rpartition(".")[2].replace("_", "").removesuffix("loss")
    if "functional." not in name:
        return None
    return next((row for row in table.rows("loss") if row.short.lower() == f"{bare}loss"), None)


def mixup(interpreter: Interpreter, smoothing: Any) -> Entry | None:
    """The section `mixup`; smoothing: the loss's label smoothing, which in a recipe is part of mixup."""
    found = surely(calls(interpreter, MIXUP))
    if not found:
        return _by_hand(interpreter)
    first = found[0]
    if first.name.startswith("timm."):
        drafted: dict[str, Any] = dict(TIMM_MIXUP)
        drafted |= settings(first, TIMM_MIXUP_PLACES)
        comments = [place(first), *(unread(name) for name in drafted if drafted[name] == ASK)]
        taken = [*TIMM_MIXUP_PLACES, *map(str, TIMM_MIXUP_PLACES.values()), "num_classes", "8"]
        if setting(first, "mode", 5) in (None, "batch"):  # a recipe has only this mode; any other is left over
            taken += ["mode", "5"]
        called = any(getattr(seen.receiver, "seen", None) is first for seen in interpreter.seen)
        if first.name.endswith(".Mixup") and not called:
            return Entry("mixup", ASK, [*comments, "no call of it was read; if there is none, remove this"])
        section = Entry("mixup", drafted, comments)
        section.leave(first, *taken)
        return section
    drafted = {
        "mixup_alpha": 0.0,
        "cutmix_alpha": 0.0,
        "prob": 1.0,
        "switch_prob": 0.5,
        "label_smoothing": smoothing,
    }
    comments = []
    for seen in found:
        alpha = {"alpha": 1.0, **settings(seen, {"alpha": None})}["alpha"]
        drafted["mixup_alpha" if seen.name.endswith("MixUp") else "cutmix_alpha"] = alpha
        comments += [place(seen), *([unread("alpha")] if alpha == ASK else sources(seen.get("alpha")))]
    if not drafted["mixup_alpha"] and not drafted["cutmix_alpha"]:
        return Entry("mixup", ASK, comments, out=True)
    return Entry("mixup", drafted, list(dict.fromkeys(comments)))


def _by_hand(interpreter: Interpreter) -> Entry | None:
    for function in interpreter.functions.values():
        name = getattr(function.node, "name", "")
        body = getattr(function.node, "body", None)
        first = interpreter.reached.get(id(body[0]), (0, ())) if isinstance(body, list) else (0, ())
        called = CERTAINTIES[first[0]] not in (UNCALLED, OPTION)
        if called and re.search(r"mix_?up|cut_?mix", name.lower()) and function.owner is None:
            where = (
                f"{function.scope.source.shown} line {function.node.lineno}: {name}() is written by hand; write it here"
            )
            return Entry("mixup", ASK, [where], out=True)
    return None


# their positions in timm's ModelEmaV3; older ones only have the first
EMA_PLACES = {"decay": 1, "min_decay": 2, "update_after_step": 3, "warmup_gamma": 5, "warmup_power": 6}


def ema(interpreter: Interpreter) -> Entry | None:
    """The section `ema`."""
    found = calls(interpreter, EMA)
    own = [made for made in interpreter.made if key_of(made.of.library_base() or "") == EMA]
    for made in own:
        section = _own_average(made, interpreter)
        if section is not None:
            return section
    for seen in surely(found):
        if seen.name.startswith("torch."):
            return _torch_average(seen, [place(seen)])
        newest = seen.name.endswith("V3")
        drafted = {"decay": 0.9999} | settings(seen, EMA_PLACES if newest else {"decay": 1})  # timm's
        if (warmup := setting(seen, "use_warmup", 4) if newest else None) is not None:
            drafted["warmup"] = warmup
        comments = [place(seen), *sources(seen.get("decay", 1))]
        comments += [unread(name) for name in drafted if drafted[name] == ASK]
        return Entry("ema", drafted, comments, roots={id(seen.node): "ema"})
    for seen in options(found):
        return Entry("ema", ASK, [only_where(seen)], out=True)
    return None


def _torch_average(seen: LibraryUse, comments: list[str]) -> Entry:
    """torch's AveragedModel, whose decay is an argument of its averaging function."""
    rule = next(
        (value for key in ("multi_avg_fn", "avg_fn") if isinstance(value := seen.get(key), LibraryObject)), None
    )
    made = rule.seen if rule is not None and rule.name.endswith(("get_ema_multi_avg_fn", "get_ema_avg_fn")) else None
    if made is None:
        return Entry("ema", ASK, [*comments, "its decay could not be read"], out=True)
    value = made.get("decay", 0)
    decay = number(value) if value is not None else 0.999  # torch's default
    comments += sources(value)
    if decay is None or not 0 < decay < 1:
        return Entry("ema", ASK, [*comments, "its decay could not be read"], out=True)
    if known(seen.get("use_buffers", 4), False) is not True:
        comments.append("without use_buffers torch averages only the weights; a recipe averages the buffers too")
    return Entry("ema", {"decay": float(decay)}, comments, roots={id(seen.node): "ema"})


def _own_average(made: ScriptObject, interpreter: Interpreter) -> Entry | None:
    """An object of the script's own class of averages."""
    if made.source is None or made.node is None:
        return None
    value = next((argument.value for argument in made.arguments if argument.name == "decay"), None)
    decay = number(value)
    where = f"{made.source.shown} line {made.node.lineno}: {made.source.text(made.node)}"
    every = [
        s for s in interpreter.seen if s.name.endswith(".update_parameters") and s.condition and "%" in s.condition
    ]
    comments = [
        where,
        *sources(value),
        *(f"the script updates it where {s.condition}; a recipe does at every step" for s in every[:1]),
    ]
    if made.certainty in (OPTION, UNCALLED):
        return Entry(
            "ema",
            {"decay": float(f"{decay:.6g}")} if decay else ASK,
            [*comments, "only with other arguments"],
            out=True,
        )
    if decay is None or not 0 < decay < 1:
        return Entry("ema", ASK, [*comments, "its decay could not be read"], out=True)
    return Entry("ema", {"decay": float(decay)}, comments, roots={id(made.node): "ema"})


def sync(interpreter: Interpreter) -> Entry | None:
    """The key `sync_batchnorm`."""
    found = calls(interpreter, SYNC)
    for seen in surely(found):
        return Entry("sync_batchnorm", True, [place(seen)])
    for seen in options(found):
        return Entry("sync_batchnorm", True, [only_where(seen)], out=True)
    return None


def unsmoothed(loss: Entry) -> None:
    """Remove the loss's label smoothing: in a recipe with mixup, mixup smooths the labels."""
    for entry in loss.below or []:
        if entry.key == "args" and entry.below is not None:
            for argument in entry.below:
                if argument.key == "label_smoothing":
                    argument.out = True
                    argument.comments.append("mixup smooths the labels itself")
            if all(argument.out for argument in entry.below):
                entry.out = True
    if isinstance(loss.value, dict):
        loss.value.pop("args", None)


# precision

OF_DEVICES = ("torch.cuda.", "torch.cpu.")  # all others take the device as first argument
SCALER_FIELDS = ("init_scale", "growth_factor", "backoff_factor", "growth_interval")


def _enabled(seen: LibraryUse) -> Any:
    """Whether a scaler or an autocast is enabled; ??? where that could not be read."""
    of_device, scaler = seen.name.startswith(OF_DEVICES), seen.name.endswith("Scaler")
    at = (4 if of_device else 5) if scaler else (0 if of_device else 2)
    given = setting(seen, "enabled", at)
    return True if given is None else given


ON_DEVICES = re.compile(r"cuda|gpu|\bcpu\b|\bmps\b|\bnpu\b", re.IGNORECASE)  # of a condition on where the script runs


def _depends(interpreter: Interpreter, seen: LibraryUse) -> list[str]:
    """The undecided conditions of a call that the training itself does not have, besides those on the device."""
    if seen.certainty != PERHAPS:
        return []
    starts = surely(by_sureness(one for one in interpreter.seen if one.name.endswith(".backward")))
    several = [set((one.condition or "").split(" and ")) for one in starts]
    always = set.intersection(*several) if several else set()
    mine = [text for text in (seen.condition or "").split(" and ") if text and text not in always]
    return [text for text in mine if not ON_DEVICES.search(text)]


def amp(interpreter: Interpreter) -> list[Entry]:
    """The sections `amp`, `loss_scale` and `dynamic_loss_scale`."""
    found = calls(interpreter, AMP)
    entries: list[Entry] = []
    for seen in surely(found):
        if "opt_level" in {argument.name for argument in seen.arguments or []} or seen.name.startswith("apex."):
            return _apex(seen)
        enabled = _enabled(seen)
        if enabled is False:
            continue
        if enabled == ASK:
            entries.append(Entry("amp", ASK, [place(seen), "whether it is enabled could not be read"]))
            break
        if _depends(interpreter, seen):
            chosen = distinct(surely(found))
            entries.append(Entry("amp", ASK, [*map(str, map(place, chosen)), "which of it runs could not be read"]))
            break
        dtype = seen.get("dtype") or (seen.get("dtype", 1) if not seen.name.startswith("torch.cuda") else None)
        if dtype is not None and not isinstance(dtype, LibraryName):
            entries.append(Entry("amp", ASK, [place(seen), "its dtype could not be read"]))
            break
        short = dtype.name.rpartition(".")[2] if dtype is not None else "float16"
        wanted = "bfloat16" if short == "bfloat16" else "float16"
        entries.append(Entry("amp", {"level": "O1", "dtype": wanted}, [place(seen)]))
        break
    else:
        for seen in found[:1]:
            written = next((a.node for a in seen.arguments or [] if a.name == "enabled"), None)
            why = seen.condition or (seen.source.text(written) if written is not None else "it is enabled")
            entries.append(
                Entry("amp", {"level": "O1", "dtype": "float16"}, [f"{place(seen)}, only where {why}"], out=True)
            )
    scalers = calls(interpreter, SCALE)
    for seen in [s for s in surely(scalers) if _enabled(s) is not False][:1]:
        roots = {id(seen.node): "scaler"}
        if _enabled(seen) == ASK:
            comments = [place(seen), "whether it is enabled could not be read"]
            return [*entries, Entry("dynamic_loss_scale", ASK, comments, roots=roots)]
        if _depends(interpreter, seen):
            return [
                *entries,
                Entry("dynamic_loss_scale", ASK, [place(seen), "whether it is on could not be read"], roots=roots),
            ]
        first = 0 if seen.name.startswith(OF_DEVICES) else 1
        drafted = settings(seen, {name: first + at for at, name in enumerate(SCALER_FIELDS)})
        if drafted.get("growth_interval", ASK) != ASK:
            drafted["growth_interval"] = int(drafted["growth_interval"])
        comments = [place(seen), *(unread(name) for name in drafted if drafted[name] == ASK)]
        return [*entries, Entry("dynamic_loss_scale", drafted, comments, roots=roots)]
    for seen in options(scalers)[:1]:
        entries.append(Entry("dynamic_loss_scale", {}, [only_where(seen)], out=True))
    return entries


def switched_off(interpreter: Interpreter) -> list[LibraryUse]:
    """The scalers and autocasts that do nothing, since they are made with enabled=False."""
    found = [*calls(interpreter, SCALE), *calls(interpreter, AMP)]
    return [seen for seen in found if _enabled(seen) is False and seen.certainty != OPTION]


def _apex(seen: LibraryUse) -> list[Entry]:
    level = setting(seen, "opt_level", 2) or "O1"
    if level not in ("O0", "O1", "O2", "O3"):
        return [Entry("amp", {"level": "O1"}, [place(seen), "its opt_level could not be read"], out=True)]
    found = [Entry("amp", {"level": level, "dtype": "float16"}, [place(seen), *sources(seen.get("opt_level", 2))])]
    scale = seen.get("loss_scale")
    drafted = setting(seen, "loss_scale") or "dynamic"
    if drafted == ASK and level != "O0":
        return [*found, Entry("dynamic_loss_scale", ASK, [place(seen), unread("loss_scale")])]
    try:
        fixed = float(drafted)
    except (TypeError, ValueError):
        fixed = 0.0
    if level == "O0":
        return found
    if fixed > 0:
        return [*found, Entry("loss_scale", fixed, [place(seen), *sources(scale)])]
    return [*found, Entry("dynamic_loss_scale", {}, ["apex's loss scale is dynamic", *sources(scale)])]


ROUGHER = re.compile(r"torch\.(backends\.(\w+\.)*(allow_tf32|fp32_precision|allow_[bf]+p?16_\w+)|set_float32_\w+)")
EXACT = (False, "highest", "ieee", "none")  # torch's own float32
ROUNDS = "on GPUs torch rounds more coarsely by this, which no recipe says"


GRADIENTS_OFF = "gradients are computed or not by this from here on"
FOLDER = "files whose path is relative are looked for there from here on"
OF_A_LIBRARY = "what a library computes is another thing from here on"
MAY_SET = "this was not read, and may change the options that it is given"


def set_for_all(flow: Flow) -> dict[int, str]:
    """Statement (its id) -> why it is listed, of those that change what others compute: how coarsely torch rounds,
    whether gradients are computed, where files are, what stands in a library, or what options are."""
    found = {}
    for statement in flow.statements:
        node, calls, alone = statement.node, [call for call in statement.calls if call.args], statement.alone
        given = [(one, ast.unparse(one), node.value) for one in node.targets] if isinstance(node, ast.Assign) else []
        for target, name, value in (*given, *((None, name_of(flow, call), call.args[0]) for call in calls)):
            switched = name == "torch.set_grad_enabled" and known(flow.value(value)) is not True and alone in calls
            if ROUGHER.fullmatch(name) and known(flow.value(value)) not in EXACT:
                found[id(statement)] = ROUNDS
            elif (name == "torch.set_grad_enabled" and switched) or (
                target is not None and _in_a_library(flow, target)
            ):
                found[id(statement)] = OF_A_LIBRARY if target is not None else GRADIENTS_OFF
            elif name == "os.chdir":
                found[id(statement)] = FOLDER
        if isinstance(alone, ast.Call) and any(
            _may_set(flow, alone, one) for one in [*alone.args, *(k.value for k in alone.keywords)]
        ):
            found[id(statement)] = MAY_SET
    return found


def _in_a_library(flow: Flow, target: ast.expr | None) -> bool:
    """Whether an assignment puts something else into one of the libraries that train."""
    of = flow.value(target.value) if isinstance(target, ast.Attribute) else None
    name = f"{of.name}.{getattr(target, 'attr', '')}" if isinstance(of, LibraryName) else ""
    return is_library(name) and reason(name) is None


def _may_set(flow: Flow, call: ast.Call, given: ast.expr) -> bool:
    """Whether a call, for its effect alone, of a function that was not found gets all options at once."""
    called, options = flow.value(call.func), isinstance(flow.value(given), (ParsedArguments, ScriptModule))
    if isinstance(called, LibraryName):
        return options and flow.interpreter.lacks(called.name) and reason(called.name) is None
    imported = isinstance(call.func, ast.Name) and not hasattr(builtins, call.func.id)
    return options and imported and type(called) is Value


# where the backward pass starts: from a loss of several terms, or of several branches


def _is_quotient(node: ast.expr) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)


def unread_loss(flow: Flow) -> str:
    """Words where the backward pass does not start from a loss of torch: the line that makes its start."""
    backward = [(s, call) for s in named(flow) for call in s.calls if getattr(call.func, "attr", "") == "backward"]
    if not backward:
        return not_found(flow, "no call of backward() was found in the files that were read")
    reached, never = flow.interpreter.reached, (len(CERTAINTIES), ())
    backward.sort(key=lambda found: reached.get(id(found[0].node), never)[0])  # the surest first
    for statement, call in backward:
        start = call.func.value  # type: ignore[attr-defined]
        if isinstance(start, ast.Call) and getattr(start.func, "attr", "") == "scale" and start.args:
            start = start.args[0]  # a scaler's loss
        elif call.args and (isinstance(flow.value(start), ScriptObject) or re.search(TAKES_LOSS, ast.unparse(start))):
            start = call.args[0]
        for _ in range(4):  # micro-batches are not where it starts
            given = [one.value for one in flow.written(start) if one.value is not None and not one.path]
            of = given[0] if len(given) == 1 and _is_quotient(given[0]) else start
            start = of.left if _is_quotient(of) else of
        behind = [one for one in flow.behind(start) if one is not start and not isinstance(one, ast.Constant)]
        around = [made for one in behind if (made := flow.of.get(id(one))) is not None and made is not statement]
        around.sort(key=lambda made: CERTAINTIES[reached.get(id(made.node), (0, ()))[0]] == OPTION)
        if made := next((made for made in around if made.alone is None), None):
            return words_of(made, "the backward pass starts from this, and its loss was not read")
    return "which loss the backward pass starts from was not found"


def _starts(flow: Flow) -> Iterator[ast.expr]:
    """The expressions that backward passes start from, and their arguments."""
    for call in (call for s in named(flow) for call in s.calls):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
            yield from (call.func.value, *call.args)


def starts_backward(roles: Roles, starts: list[ast.expr]) -> bool:
    """Whether a backward pass, which starts from these, starts from a loss."""
    return any(roles.role(node) == LOSS for node in starts)


def added_to_the_loss(roles: Roles, starts: list[ast.expr]) -> list[Statement]:
    """The statements that add something else to the loss of a backward pass, in the order of the script."""
    flow = roles.flow
    behind = [node for start in starts for node in flow.behind(start, lambda one: roles.role(one) == LOSS)]
    names = (part for node in behind for part in ast.walk(node) if isinstance(part, ast.Name))
    found = {d.statement for name in names if roles.role(name) == LOSS for d in flow.reads.get(id(name), ())}
    found |= {flow.of[id(node)] for node in behind if id(node) in flow.of}
    return sorted((one for one in found if _adds(roles, one)), key=lambda statement: statement.place)


def _adds(roles: Roles, statement: Statement) -> bool:
    node = statement.node
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, (ast.Add, ast.Sub)) and roles.role(node.target) == LOSS
    value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)) else None
    sums = [terms(part) for part in ast.walk(value) if isinstance(part, ast.expr)] if value is not None else []
    return any({LOSS, None} <= {LOSS if roles.role(one) == LOSS else None for one in several} for several in sums)


def terms(node: ast.expr) -> list[ast.expr]:
    """The terms of a sum or difference, also of its mean; for anything else the expression itself."""
    inside = node.func if isinstance(node, ast.Call) else None
    if isinstance(inside, ast.Attribute) and inside.attr in ("mean", "sum") and len(terms(inside.value)) > 1:
        return terms(inside.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return [*terms(node.left), *terms(node.right)]
    return [node]


def instead_of(seen: LibraryUse, flow: Flow) -> Iterator[str]:
    """Words for what stands in place of a call that a condition chooses: for the same name, or result, elsewhere."""
    own = flow.of.get(id(seen.node))
    if own is None or seen.certainty != PERHAPS:
        return
    for other in (s for s in flow.statements if s.function is own.function and s.source is own.source and s is not own):
        rank, conditions = flow.interpreter.reached.get(id(other.node), (0, ()))
        if CERTAINTIES[rank] != OPTION and _replaces(other, own):
            where = f", where {joined(conditions)}" if conditions else ""
            yield f"{Comment(other.place, shown(other.text))}{where}: in its place"


def _replaces(one: Statement, other: Statement) -> bool:
    """Whether of two statements of a function one or the other gives a name its value, or the function its result."""
    if isinstance(one.node, ast.Return):
        return isinstance(other.node, ast.Return)
    written = [{ast.unparse(target) for target in getattr(each.node, "targets", [])} for each in (one, other)]
    if not written[0] & written[1] or isinstance(getattr(one.node, "value", None), ast.Constant):
        return False
    before = one.place < other.place and one.around == other.around[: len(one.around)]
    return before or any(part_of(head, one) != part_of(head, other) for head in one.around if head in other.around)


TAKES_LOSS = r"(?i)accelerator|fabric|engine|scaler"  # whose backward() takes the loss
