"""Steps of one's own: every form of docs/your_own_pair.md agrees, and the mistakes that it lists are named."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from pathlib import Path

import pytest
from msmigrate.errors import BadInput, DoesNotCompile
from msmigrate.parity.align.user_model import checked, given, optimizer_inside, takes_optimizer
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.result import Report
from msmigrate.parity.run import parity_step
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.parity.trace import REDUCED_GRADIENTS
from msmigrate.training.recipe import reader as recipes

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PAGE = (ROOT / "docs" / "your_own_pair.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "own_step"
# what the recipe says besides -> on which a torch model and a MindSpore step, or the reverse, have to agree
CLIPPED = {"clip": {"max_norm": 0.05}, "accumulate": 2, "loss_scale": 128.0}
AVERAGED = {"ema": {"decay": 0.9}}
FORMS = [
    ("model", "model", 2, {}),
    ("with_loss", "with_loss", 2, {}),
    ("model", "with_cell", 2, {}),
    ("with_step", "with_step", 2, {}),
    ("model", "with_step", 2, CLIPPED),
    ("with_step", "model", 2, CLIPPED),
    ("model", "wrapper", 3, AVERAGED),
    ("with_optimizer", "with_optimizer", 3, {}),
    ("trainer(calls=2, clip=0.05)", "wrapper(calls=2, clip=0.05, sens=64.0)", 4, {}),
    ("with_step", "with_step(compiled=True)", 2, {}),
    ("trainer", "with_cell", 2, {}),
    ("scheduled", "scheduled", 3, {}),
    ("scheduled(total=4)", "scheduled(total=4)", 3, {}),  # a list that is shorter than the given updates
]
NAMED = [
    ("trainer(calls=2, clip=0.05)", "calls=2, clip=0.05, fault='clipped separately'", "clipped before they are added"),
    ("trainer(clip=0.05)", "clip=0.1", "clipped to a norm of 0.1, in torch to one of 0.05"),
    ("trainer(clip=0.05)", "clip=0.05, fault='not clipped'", "torch's step clips the gradients to a norm of 0.05"),
    ("trainer(calls=2)", "calls=2, fault='not divided'", "2 times torch's gradients: 2 are added and not divided"),
    ("trainer", "sens=64.0, fault='scale left'", "a loss scale of 64 is not taken out"),
    ("trainer", "fault='average without buffers'", "the moving average does not hold bn.running_mean"),
    ("trainer", "fault='averaged before'", "taken before the update"),
    ("trainer", "decay=0.99", "keeps a share of 0.99 of itself, torch's 0.9"),
    ("trainer(calls=2)", "calls=2, fault='sums kept'", "MindSpore's step keeps its gradients"),
    ("trainer(clip=0.05)", "clip=0.05, fault='clipped before the reducer'", "before the reducer averages them"),
]
QUICK = ("calls=2, clip=0.05, fault='clipped separately'",)


def report(folder: Path, torch: str, mindspore: str, steps: int, more: dict, mode: str = "pynative") -> Report:
    pair = Pair(f"{EXAMPLE}/torch_step.py:{torch}", f"{EXAMPLE}/mindspore_step.py:{mindspore}")
    recipe = recipes.load(EXAMPLE / "recipe.yaml")
    recipe = type(recipe).model_validate({**recipe.model_dump(), **more})
    job = ParityJob(recipe, folder / "traces", pair=pair, steps=steps, init_seeds=1, no_replay=True, mode=mode)
    return parity_step(EXAMPLE / "recipe.yaml", job)


def marked(cases: list[tuple]) -> list:
    """The cases, the slower ones in the slow suite."""
    chosen = (("trainer", "with_cell"), *((case[0], case[1]) for case in NAMED if case[1] in QUICK))
    quick = [case[:2] in chosen or (case[0] == "model" and case[3:] == (CLIPPED,)) for case in cases]
    return [
        pytest.param(*case, marks=() if is_quick else pytest.mark.full)
        for case, is_quick in zip(cases, quick, strict=True)
    ]


@pytest.mark.parametrize(("torch", "mindspore", "steps", "more"), marked(FORMS))
def test_correct_steps_of_every_form_agree(torch: str, mindspore: str, steps: int, more: dict, tmp_path: Path) -> None:
    found = report(tmp_path, torch, mindspore, steps, more)
    assert found.parity, [(f.place, f.why) for f in found.findings if f.verdict is not Verdict.PASS]
    notes = " | ".join(found.notes)
    one_sided = (mindspore == "model" and more == CLIPPED) or torch == "scheduled"
    assert ("which only MindSpore's step shows" in notes) == one_sided, notes
    assert ("runs the net twice" in notes) == mindspore.startswith("wrapper"), notes
    gradients = {f.name for f in found.findings if f.stage == "gradients" and f.part == "parameters"}
    assert len(gradients) == 5
    assert ("not judged: the outputs of layers in the step" in notes) == ("compiled" in mindspore), notes


@pytest.mark.parametrize(("torch", "mindspore", "text"), marked(NAMED))
def test_mistakes_of_wrappers_are_named(torch: str, mindspore: str, text: str, tmp_path: Path) -> None:
    found = report(tmp_path, torch, f"wrapper({mindspore})", 4 if "calls" in torch else 2, {})
    assert not found.parity
    assert found.causes and text in found.causes[0].text, [cause.text for cause in found.causes]
    assert found.causes[0].fix


UNCOMPILED = """
import mindspore as ms
from mindspore import nn


class Net(nn.Cell):
    def __init__(self, tries):
        super().__init__()
        self.fc, self.tries = nn.Dense(3, 5), tries

    def construct(self, x):
        return guarded(self.fc(x.mean((2, 3)))) if self.tries else self.fc(x.mean((2, 3)))


class Step(nn.TrainOneStepCell):
    def construct(self, *inputs):
        loss = self.network(*inputs)
        grads = guarded(self.grad(self.network, self.weights)(*inputs, self.sens))
        self.optimizer(grads)
        return loss


def guarded(x):
    try:
        return x
    except ValueError:
        return x


def net():
    return Net(True)


def step():
    net = Net(False)
    optimizer = nn.SGD(net.trainable_params(), 0.05)
    return {"model": net, "step": Step(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)}
"""
TORCH = """
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 5)

    def forward(self, x):
        return self.fc(x.mean((2, 3)))
"""


@pytest.mark.parametrize("what", ["net", "step"])
def test_what_does_not_compile_ends_the_run_with_the_users_line(what: str, tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(TORCH)
    (tmp_path / "mine.py").write_text(UNCOMPILED)
    pair = Pair(f"{tmp_path}/theirs.py:Net", f"{tmp_path}/mine.py:{what}")
    job = ParityJob(recipes.load(EXAMPLE / "recipe.yaml"), tmp_path / "t", pair=pair, init_seeds=1, mode="graph")
    line = UNCOMPILED.splitlines().index("    try:") + 1
    with pytest.raises(DoesNotCompile, match=rf"mine.py:{line}: graph mode does not compile `try:`. Write instead: an"):
        parity_step(EXAMPLE / "recipe.yaml", job)
    assert not (job.folder / "mindspore" / "trace.json").exists()


@pytest.mark.full
@pytest.mark.parametrize(
    ("torch", "mindspore", "note"),
    [
        ("trainer(calls=2, clip=0.05)", "wrapper(calls=2, clip=0.05)", "compiled step: gradients and the logits"),
        ("trainer", "with_optimizer", "compiled step: gradients, which it shows"),
        ("with_step", "with_step", "compiled step: gradients and the logits"),
        ("with_step", "with_step(compiled=True)", "is compiled again: it is another function each time"),
    ],
)
def test_own_steps_are_compiled_in_graph_mode(torch: str, mindspore: str, note: str, tmp_path: Path) -> None:
    """A Cell of one's own was once run in PyNative mode again, and said to be compiled."""
    found = report(tmp_path, torch, mindspore, 2, {}, mode="graph")
    assert found.parity, [(f.place, f.why) for f in found.findings if f.verdict is not Verdict.PASS]
    assert any(f.part.startswith("graph ") for f in found.findings)
    assert any(note in one for one in found.notes), found.notes


@pytest.mark.full
def test_what_only_torch_s_step_shows_is_judged_in_neither_mode(tmp_path: Path) -> None:
    """The compiled step was once said to lack the moving average, beside a note that it is not judged."""
    pair = Pair(f"{EXAMPLE}/torch_step.py:trainer", f"{EXAMPLE}/mindspore_step.py:with_cell")
    recipe = recipes.load(EXAMPLE / "recipe.yaml")
    job = ParityJob(recipe, tmp_path / "t", pair=pair, steps=2, init_seeds=1, no_replay=True, mode="graph")
    found = parity_step(EXAMPLE / "recipe.yaml", job)
    assert found.parity, [(f.place, f.why) for f in found.findings if f.verdict is not Verdict.PASS]
    assert any(f.part.startswith("graph ") for f in found.findings)
    assert any("the moving average, which only torch's step shows" in note for note in found.notes)


@pytest.mark.full
def test_a_schedule_inside_a_step_is_found_where_it_differs(tmp_path: Path) -> None:
    found = report(tmp_path, "scheduled", "scheduled(total=6)", 3, {})
    assert found.first_divergence is not None
    assert (found.first_divergence.stage, found.first_divergence.part) == ("update", "step2")
    assert not found.hints, "the recipe's optimizer is not the one that computes here"


def stepped(folder: Path, torch: str, mindspore: str, steps: int, mode: str = "pynative") -> Report:
    """The report on two of the steps of stepping_torch.py and stepping_mindspore.py."""
    pair = Pair(f"{HERE}/stepping_torch.py:{torch}", f"{HERE}/stepping_mindspore.py:{mindspore}")
    recipe = recipes.load(EXAMPLE / "recipe.yaml")
    job = ParityJob(recipe, folder / "traces", pair=pair, steps=steps, init_seeds=1, no_replay=True, mode=mode)
    return parity_step(EXAMPLE / "recipe.yaml", job)


@pytest.mark.parametrize(
    ("torch", "mindspore", "steps", "fault", "text"),
    [
        (
            "loop(clip='norm')",
            "inherited('norm', before=True)",
            1,
            "clip-before-allreduce",
            "before the reducer averages",
        ),
        *(
            pytest.param(*case, marks=pytest.mark.full)
            for case in (
                ("loop(clip='norm')", "flagged('norm', before=True)", 1, "clip-before-allreduce", "before the reducer"),
                (
                    "loop(clip='norm')",
                    "flagged('each')",
                    1,
                    "clip-per-tensor",
                    "in torch all together to a norm of 0.1",
                ),
                ("loop(clip='norm')", "cut()", 1, "clip-on-accumulated-sum", "to 0.1 where their mean is taken"),
                ("cut()", "cut(each=False)", 1, None, "in torch's step each part's gradients are clipped before"),
                ("loop()", "inherited('each')", 1, "clip-per-tensor", "to a norm of 0.05, and in torch it is not"),
                ("loop()", "flagged('value')", 1, "clip-by-value", "each element is clipped at 0.003, and in torch"),
                ("loop(clip='value')", "flagged('norm')", 1, None, "in torch's step each element is clipped at 0.003"),
                ("loop(clip='each')", "flagged()", 1, None, "in torch's step each gradient by itself is clipped to"),
                ("loop(clip='value')", "flagged('value', before=True)", 1, "clip-before-allreduce", "are not clipped"),
                ("loop(clip='high')", "inherited('high', before=True)", 1, "clip-before-allreduce", "are not clipped"),
                ("loop()", "listed(forgets=True)", 3, None, "MindSpore's step keeps its gradients"),
                ("loop(every=2, clip='norm')", "engine(by='norm', forgets=True)", 4, None, "MindSpore's step keeps"),
                ("function(forgets=True)", "function()", 2, None, "torch's step keeps its gradients"),
                ("loop(forgets=True)", "function()", 2, None, "torch's step keeps its gradients"),
            )
        ),
    ],
)
def test_where_a_step_clips_and_what_it_keeps_are_named(
    torch: str, mindspore: str, steps: int, fault: str | None, text: str, tmp_path: Path
) -> None:
    found = stepped(tmp_path, torch, mindspore, steps)
    assert [(cause.fault, text in cause.text) for cause in found.causes] == [(fault, True)], found.causes
    assert found.causes[0].fix
    assert found.first_divergence is not None and found.first_divergence.stage == "gradients"


@pytest.mark.parametrize(
    ("mindspore", "said"),
    [
        ("sgd(lr=0.005, of_biases=0.02)", ["0.5 times as far", "2 times as far"]),
        pytest.param("sgd()", [], marks=pytest.mark.full),
        pytest.param("sgd(lr=0.01002, of_biases=0.01002)", ["1.002 times as far"], marks=pytest.mark.full),
        pytest.param("listed()", [], marks=pytest.mark.full),  # no multiple: AdamW's steps
    ],
)
def test_another_rate_where_no_optimizer_is_known_on_torchs_side(
    mindspore: str, said: list[str], tmp_path: Path
) -> None:
    """Such steps were red without a cause."""
    found = stepped(tmp_path, "by_hand()", mindspore, 2)
    failed = [finding.name for finding in found.findings if finding.verdict is Verdict.FAIL]
    assert bool(failed) == (mindspore != "sgd()") and len(found.causes) == len(said), (failed, found.causes)
    for cause, text in zip(sorted(found.causes, key=lambda cause: cause.text), said, strict=True):
        assert text in cause.text and "learning rate" in cause.fix, cause


@pytest.mark.parametrize(
    ("torch", "mindspore", "steps", "mode"),
    [
        pytest.param(*case, marks=pytest.mark.full)
        for case in (
            ("loop(clip='norm')", "inherited('norm')", 2, "graph"),
            ("loop(clip='value')", "flagged('value')", 2, "pynative"),
            ("loop(clip='each')", "flagged('each')", 2, "graph"),
            ("loop(every=2, clip='norm')", "engine(by='norm')", 4, "pynative"),
            ("loop(every=2)", "listed(every=2)", 3, "graph"),  # which begins anew while sums are in a list
            ("function()", "function()", 2, "pynative"),
            ("cut()", "cut()", 2, "graph"),
        )
    ],
)
def test_steps_that_clip_and_clear_rightly_agree(
    torch: str, mindspore: str, steps: int, mode: str, tmp_path: Path
) -> None:
    found = stepped(tmp_path, torch, mindspore, steps, mode)
    assert found.parity, [(f.place, f.why) for f in found.findings if f.verdict is Verdict.FAIL]
    seen = any(f.part == REDUCED_GRADIENTS for f in found.findings)
    assert seen == mindspore.startswith(("inherited", "flagged"))
    assert not any("before the reducer" in note for note in found.notes)


def test_a_batch_that_one_step_alone_cuts_into_micro_batches_is_compared_but_for_its_layers(tmp_path: Path) -> None:
    """Their outputs have other shapes then, which was called a mismatch of a right step."""
    found = stepped(tmp_path, "loop()", "cut(by='')", 2)
    assert found.parity, [(f.place, f.why) for f in found.findings if f.verdict is Verdict.FAIL]
    said = "not judged: the outputs of layers in the step: torch's step computes 8 images at once, MindSpore's 4"
    assert said in found.notes


@pytest.mark.parametrize("form", ["module", "torch's", "dict", "list", "object"])
def test_an_average_begins_at_the_starting_weights_in_whatever_it_is_kept(form: str) -> None:
    """A copied model inside of another module kept the weights that it was made with: a right step was red."""
    import torch
    from msmigrate.parity.align import torch_user_model

    pair = Pair(f"{HERE}/stepping_torch.py:averaging({form!r})", f"{HERE}/stepping_mindspore.py:averaging")
    recipe = recipes.load(EXAMPLE / "recipe.yaml")
    taken = torch_user_model.build(ParityJob(recipe, EXAMPLE, pair=pair))
    assert taken.step is not None and len(taken.copies) == 1
    model = copy.deepcopy(taken.model).double()
    with torch.no_grad():
        for tensor in model.state_dict().values():
            tensor += 1
    step = torch_user_model.PairStep(recipe, model, taken)
    state = model.state_dict()
    averages = step.step.__self__.averages()
    assert averages and all(torch.equal(average, state[name]) for name, average in averages.items())
    assert not any(average.data_ptr() == state[name].data_ptr() for name, average in averages.items())
    found = step(torch.ones(2, 3, 16, 16, dtype=torch.float64), torch.tensor([0, 1]))
    assert step.step.__self__.net is model and bool(found.loss > 0)


@pytest.mark.full
@pytest.mark.parametrize("form", ["module", "dict"])
def test_a_trainer_s_method_with_averages_of_every_weight_agrees(form: str, tmp_path: Path) -> None:
    found = stepped(tmp_path / "right", f"averaging({form!r})", "averaging", 2)
    assert found.parity, [(f.place, f.why) for f in found.findings if f.verdict is Verdict.FAIL]
    assert any("ema" in f.part for f in found.findings)
    wrong = stepped(tmp_path / "wrong", f"averaging({form!r})", "averaging(decay=0.99)", 2)
    assert [cause.fault for cause in wrong.causes] == ["ema-argument"]


@pytest.mark.full
def test_what_differs_in_the_optimizers_that_steps_hold_is_named(tmp_path: Path) -> None:
    found = stepped(tmp_path, "loop()", "listed(decay=0.2)", 1)
    assert [("weight_decay" in cause.text, cause.place) for cause in found.causes] == [(True, "every parameter")]


@pytest.mark.full
def test_a_reducer_that_is_never_called_is_told(tmp_path: Path) -> None:
    found = stepped(tmp_path, "loop(clip='norm')", "flagged('norm', before=True, calls=False)", 1)
    assert found.parity
    assert any("not judged: whether gradients are clipped before or after the reducer" in note for note in found.notes)


@pytest.mark.full
def test_a_torch_half_that_did_not_know_of_the_step_is_unproven_and_then_at_parity(tmp_path: Path) -> None:
    text = (EXAMPLE / "recipe.yaml").read_text(encoding="utf-8")
    (tmp_path / "r.yaml").write_text(f"{text}clip: {{max_norm: 0.05}}\n", encoding="utf-8")
    models = ("--torch", f"{EXAMPLE}/torch_step.py:model")
    models += ("--mindspore", f"{EXAMPLE}/mindspore_step.py:wrapper(clip=0.05)")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "msmigrate", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    halves = (("A", "torch", ()), ("B", "mindspore", ("--with", "A")), ("C", "torch", ("--with", "B")))
    for out, framework, given_half in halves:
        options = ("--framework", framework, "-o", out, *given_half, *models, "--steps", "1")
        assert run("record", "r.yaml", *options).returncode == 0
    early, late = run("compare", "A", "B"), run("compare", "C", "B")
    assert early.returncode == 1 and "Unproven: nothing was compared in gradients" in early.stdout, early
    assert "torch was recorded before it was known" in " ".join(early.stdout.split())
    assert late.returncode == 0 and "\nParity: " in late.stdout, late


def test_the_page_lists_what_is_tested() -> None:
    rows = re.findall(r"^\| `([^`]*)` · `([^`]*)` \|", PAGE, re.M)
    assert {(mindspore, torch) for torch, mindspore, _ in NAMED} == set(rows) and len(rows) == len(NAMED)
    lines = re.findall(r"--torch torch_step\.py:(\w+) --mindspore mindspore_step\.py:(\w+)", PAGE)
    forms = {(torch.partition("(")[0], mindspore.partition("(")[0]) for torch, mindspore, _, _ in FORMS}
    assert len(lines) == 6 and set(lines) - {("model", "model"), ("with_loss", "with_loss")} <= forms


class Tensor:
    def item(self) -> float:
        return 1.0


class Net:
    pass


class Optimizer(Net):
    def __call__(self, gradients: object) -> None:
        raise AssertionError


class Held:
    def __init__(self) -> None:
        self.optimizer = Optimizer()

    def __call__(self, images: object, labels: object) -> None:
        raise AssertionError


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ((Tensor(), Tensor()), "the torch step returns tuple: expected the loss, or a dict with loss, logits, grads"),
        (None, "the torch step returns NoneType: expected the loss, or a dict"),
        ({"loss": 1.0}, "the torch step's 'loss' is float: expected a tensor"),
        ({"logits": Tensor()}, "the torch step's 'loss' is not there: expected a tensor"),
        ({"loss": Tensor(), "gradients": {}}, "the torch step returns 'gradients'; it may return loss"),
        ({"loss": Tensor(), "grads": [Tensor()]}, "the torch step's 'grads' is no dict of tensors"),
        ({"loss": Tensor(), "ema": {"fc": 3}}, "the torch step's 'ema' is no dict of tensors"),
    ],
)
def test_what_a_step_may_not_return_is_one_line(returned: object, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        checked(returned, Tensor, "torch")
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_model_whose_outputs_the_recipe_s_loss_does_not_take_is_one_line(tmp_path: Path) -> None:
    """A block gives images; the loss's own error spoke of spatial targets."""
    import numpy as np
    from msmigrate.parity.align import torch_user_model
    from msmigrate.parity.record.batches import Inputs

    (tmp_path / "block.py").write_text("from torch import nn\ndef block(): return nn.Conv2d(3, 6, 3)\n", "utf-8")
    recipe = recipes.load(EXAMPLE / "recipe.yaml")
    job = ParityJob(recipe, tmp_path, pair=Pair(f"{tmp_path}/block.py:block", "unused.py:block"))
    drawn = Inputs([np.zeros((4, 3, 8, 8), np.float32)], [np.zeros(4, np.int64)], 6)
    with pytest.raises(BadInput) as caught:
        torch_user_model.begin(job, lambda recipe: drawn)
    said = "the recipe's CrossEntropyLoss does not take what the torch model gives, 4x6x6x6, with labels of 4"
    assert str(caught.value).startswith(said) and '"loss": lambda outputs, labels' in str(caught.value)


def test_an_optimizer_may_be_one_or_make_one_and_a_trainer_holds_its_own() -> None:
    net, held = Net(), Held()
    assert given({"model": net, "optimizer": held.optimizer}, Net, "f", (Optimizer,)).optimizer is held.optimizer
    found = given({"model": net, "step": held}, Net, "f", (Optimizer,))
    assert found.optimizer is held.optimizer is optimizer_inside(held, (Optimizer,))
    assert found.parts == ["optimizer", "step"] and not takes_optimizer(held)
    with pytest.raises(BadInput, match="an optimizer that its step does not take"):
        given({"model": net, "optimizer": print, "step": held}, Net, "f", (Optimizer,))
    method = given({"model": net, "step": held.__call__}, Net, "f", (Optimizer,))  # a trainer's method is one, too
    assert method.optimizer is held.optimizer and method.parts == ["optimizer", "step"]
    with pytest.raises(BadInput, match="the step takes 2 arguments"):
        takes_optimizer(lambda images, labels: None)
