"""What a call is given and reading does not know is asked for: a library's default would be another training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from drafts import drafted as recipe_of
from drafts import listed
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.reports.script_analysis import recipe_text

Write = Callable[..., Path]
ASK = "???"
SCRIPT = """
import torch, torch.nn as nn, torchvision, yaml, timm, apex
from torch.cuda import amp
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from torchvision.transforms import v2
cfg = yaml.safe_load(open("c.yaml"))
net = torchvision.models.resnet18(num_classes=7)
data = datasets.ImageFolder("/birds/train", transforms.ToTensor())
loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.2)
made = None
for epoch in range(4):
    for x, y in loader:
        loss = criterion(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
LOADER = "shuffle=True, drop_last=True"
LOSS = "nn.CrossEntropyLoss()"
SGD = "torch.optim.SGD(net.parameters(), lr=0.2)"
MIXED = "loss = criterion(net(x), y)"


def drafted(write: Write, was: str, given: str) -> Any:
    assert was in SCRIPT
    return yaml.safe_load(recipe_text(analyze_script(write(SCRIPT.replace(was, given)))))


@pytest.mark.parametrize(
    ("was", "given", "places"),
    [
        (LOADER, 'shuffle=cfg["s"], drop_last=True', {"data.shuffle"}),
        (LOADER, 'shuffle=True, drop_last=cfg["d"]', {"data.drop_last"}),
        (LOADER, '**cfg["loader"]', {"data.shuffle", "data.drop_last"}),
        (LOSS, 'nn.CrossEntropyLoss(label_smoothing=cfg["s"])', {"loss.args.label_smoothing"}),
        (LOSS, 'timm.loss.LabelSmoothingCrossEntropy(cfg["s"])', {"loss.args.label_smoothing"}),
        (SGD, 'timm.optim.create_optimizer_v2(net, "adamw", lr=cfg["lr"], weight_decay=0.1)', {"optimizer.args.lr"}),
        (SGD, 'timm.optim.create_optimizer_v2(net, "adamw", **cfg["opt"])', {"optimizer.args.lr"}),
        ("None", 'timm.utils.ModelEmaV2(net, cfg["decay"])', {"ema.decay"}),
        ("None", 'timm.utils.ModelEmaV3(net, decay=0.9, use_warmup=cfg["w"])', {"ema.warmup"}),
        ("None", 'timm.utils.ModelEmaV3(net, 0.9, cfg["least"])', {"ema.min_decay"}),
        ("None", 'amp.GradScaler(cfg["scale"])', {"dynamic_loss_scale.init_scale"}),
        ("None", 'torch.amp.GradScaler("cuda", 8.0, 2.0, 0.5, cfg["often"])', {"dynamic_loss_scale.growth_interval"}),
        ("None", 'amp.GradScaler(8.0, 2.0, 0.5, 9, cfg["on"])', {"dynamic_loss_scale"}),
        ("None", 'amp.GradScaler(**cfg["scaler"])', {"dynamic_loss_scale"}),
        (MIXED, f'with amp.autocast(cfg["on"]): {MIXED}', {"amp"}),
        (MIXED, f'with torch.autocast("cuda", torch.float16, cfg["on"]): {MIXED}', {"amp"}),
        ("None", 'apex.amp.initialize(net, opt, "O1", loss_scale=cfg["scale"])', {"dynamic_loss_scale"}),
        (MIXED, f'x, y = v2.MixUp(alpha=cfg["a"], num_classes=7)(x, y); {MIXED}', {"mixup.mixup_alpha"}),
    ],
)
def test_what_is_given_and_not_read_is_asked_for(write: Write, was: str, given: str, places: set[str]) -> None:
    """Defaults stood here: a loader that shuffles, a decay of 0.9999, mixing that is off, half precision that is on."""
    found = drafted(write, was, given)
    for place in places:
        value = found
        for key in place.split("."):
            value = value[key]
        assert value == ASK, (place, found)


def test_what_timm_mixes_by_is_asked_for_and_what_a_recipe_cannot_is_listed(write: Write) -> None:
    made = 'timm.data.Mixup(cfg["a"], 0.5, cutmix_minmax=cfg["m"], prob=cfg["p"], mode="elem", num_classes=7)'
    found = drafted(write, MIXED, f"mix = {made}\n        x, y = mix(x, y)\n        {MIXED}")
    asked = {key for key, value in found["mixup"].items() if value == ASK}
    assert asked == {"mixup_alpha", "prob"} and found["mixup"]["cutmix_alpha"] == 0.5
    left = [line.split(": ", 1)[1] for line in found["not_in_this_recipe"]]
    assert {'cutmix_minmax=cfg["m"] of timm.data.Mixup', 'mode="elem" of timm.data.Mixup'} <= set(left)


@pytest.mark.parametrize(
    ("was", "given", "key", "value"),
    [
        ("None", "timm.utils.ModelEmaV2(net, 0.99)", "ema", {"decay": 0.99}),
        ("None", "timm.utils.ModelEmaV2(net)", "ema", {"decay": 0.9999}),
        ("None", "amp.GradScaler(1024.0)", "dynamic_loss_scale", {"init_scale": 1024.0}),
        ("None", 'torch.amp.GradScaler("cuda", 8.0)', "dynamic_loss_scale", {"init_scale": 8.0}),
        (MIXED, f"with amp.autocast(False): {MIXED}", "amp", None),
        (MIXED, f"with amp.autocast(True): {MIXED}", "amp", {"level": "O1", "dtype": "float16"}),
    ],
)
def test_what_is_given_by_its_place_counts(write: Write, was: str, given: str, key: str, value: Any) -> None:
    """Only what was given by its name was read: the decay that stands second was 0.9999."""
    assert drafted(write, was, given).get(key) == value


def test_one_of_several_optimizers_is_no_second_that_trains(write: Write) -> None:
    """Where a condition chooses, there is one loss and one model all the same; both were asked for."""
    chosen = f"""{SGD} if cfg["sgd"] else torch.optim.Adam(net.parameters())"""
    branches = f"""opt = {SGD}
else:
    opt = torch.optim.Adam(net.parameters())"""
    for was, given in ((SGD, chosen), (f"opt = {SGD}", f'if cfg["sgd"]:\n    {branches}')):
        found = drafted(write, was, given)
        assert found["optimizer"] == ASK
        assert found["model"]["name"] == "resnet18" and found["loss"]["name"] == "CrossEntropyLoss"
    both = drafted(
        write, f"opt = {SGD}", f"opt = {SGD}\nother = torch.optim.Adam(criterion.parameters())\nother.step()"
    )
    assert both["loss"] == ASK


STEPS = """
    net = build()
    opt = torch.optim.SGD(net.parameters(), lr=rate)
    for epoch in range(epochs):
        for x, y in read():
            opt.zero_grad()
            loss = scaled(nn.functional.cross_entropy(net(x), y))
            loss.backward()
            opt.step()
"""
SACRED = f"""
import torch, torch.nn as nn
from sacred import Experiment
ex = Experiment("birds")

@ex.config
def config():
    rate = 0.3011
    epochs = 3012
    wide = 3013
    if wide:
        scale = 0.3014

@ex.capture
def build(wide):
    return nn.Linear(wide, 7)

@ex.capture
def scaled(loss, scale):
    return loss * scale

@ex.automain
def main(rate, epochs):{STEPS}"""
FASTARGS = f"""
import torch, torch.nn as nn
from fastargs import Param, Section
from fastargs.decorators import param
Section("training").params(rate=Param(float, default=0.3011), epochs=Param(int, "how many", default=3012))
Section("net").params(wide=Param(int, default=3013), scale=Param(float, default=0.3014))

@param("net.wide")
def build(wide):
    return nn.Linear(wide, 7)

@param("net.scale")
def scaled(loss, scale):
    return loss * scale

@param("training.rate")
@param("training.epochs")
def main(rate, epochs):{STEPS}
main()
"""


@pytest.mark.parametrize("script", [SACRED, FASTARGS])
def test_settings_that_a_library_hands_to_functions_are_listed(script: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(script)
    lines = "\n".join(listed(tmp_path / "train.py"))
    assert all(value in lines for value in ("0.3011", "3012", "3013", "0.3014"))
    recipe = recipe_of(tmp_path / "train.py")
    assert recipe["train"]["epochs"] == recipe["optimizer"]["args"]["lr"] == "???"


HANDED = """
import torch, torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR

class Rate:
    def __init__(self, opt, k):
        FIRST
        self.schedule = LambdaLR(opt, HAND)
        LATER

    def at(self, i):
        return 1 / (1 + i / self.k)

net = nn.Linear(4, 7)
opt = torch.optim.SGD(net.parameters(), lr=0.2)
rate = Rate(opt, 3011)
AFTER
for epoch in range(4):
    for x, y in read():
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
    rate.schedule.step()
"""


@pytest.mark.parametrize("hand", ["self.at", "lambda i: 1 / (1 + i / self.k)"])
@pytest.mark.parametrize(
    "first, later, after",
    [
        ("pass", "self.k = k", "pass"),
        ("self.k = k", "pass", "pass"),
        ("pass", "self.k = 3011", "pass"),
        ("self.k = 3", "self.k = 3011", "pass"),
        ("self.k = 3", "pass", "rate.k = 3011"),
        ("pass", "self.k = 3", "rate.k = 3011"),
    ],
)
def test_what_a_function_reads_is_said_where_it_was_set_after_it_was_handed_over(
    first: str, later: str, after: str, hand: str, tmp_path: Path
) -> None:
    text = HANDED.replace("FIRST", first).replace("LATER", later).replace("AFTER", after).replace("HAND", hand)
    (tmp_path / "train.py").write_text(text)
    lines = [line for line in listed(tmp_path / "train.py") if not line.startswith("rate = Rate(")]
    assert any("3011" in line for line in lines) and not any("self.k is 3]" in line for line in lines)


HYDRA = """
import hydra, torch, torch.nn as nn
from hydra.utils import call, instantiate
from torch.utils.data import DataLoader

@hydra.main(config_path="conf", config_name="config")
def main(cfg):
    net = nn.Linear(4, 7)
    BEFORE
    loader = LOADER
    opt = torch.optim.SGD(net.parameters(), lr=0.2)
    AFTER
    for epoch in range(4):
        for x, y in loader:
            BATCH
            opt.zero_grad()
            loss = LOSS
            loss.backward()
            STEP
            opt.step()

main()
"""
AS_IT_IS = {
    "BEFORE": "pass",
    "AFTER": "pass",
    "BATCH": "pass",
    "STEP": "pass",
    "LOADER": "DataLoader(read(), batch_size=3)",
    "LOSS": "nn.functional.cross_entropy(net(x), y)",
}


@pytest.mark.parametrize(
    "parts",
    [
        {"BEFORE": "call(cfg.made, net)"},
        {"BEFORE": "instantiate(cfg.made, model=net)"},
        {"LOADER": "instantiate(cfg.made)"},
        {"LOADER": "DataLoader(instantiate(cfg.made), batch_size=3)"},
        {"LOADER": "DataLoader(read(), batch_size=3, collate_fn=instantiate(cfg.made))"},
        {"AFTER": "moves = instantiate(cfg.made, opt)"},
        {"AFTER": "opt = instantiate(cfg.made, opt)"},
        {"AFTER": "mean = instantiate(cfg.made, parameters=net.parameters())", "STEP": "mean.update()"},
        {"AFTER": "clip = instantiate(cfg.made)", "STEP": "clip(net.parameters())"},
        {"AFTER": "change = instantiate(cfg.made)", "BATCH": "x = change(x)"},
        {"AFTER": "also = instantiate(cfg.made)", "LOSS": "nn.functional.cross_entropy(net(x), y) + also(net)"},
        {
            "AFTER": "each = [instantiate(i) for i in cfg.made]",
            "STEP": "for i in each:\n                i.on_step(net)",
        },
    ],
)
def test_what_hydra_makes_of_a_file_is_in_a_line(parts: dict[str, str], tmp_path: Path) -> None:
    text = HYDRA
    for name, value in {**AS_IT_IS, **parts}.items():
        text = text.replace(name, value)
    (tmp_path / "train.py").write_text(text)
    assert "cfg.made" in recipe_text(analyze_script(tmp_path / "train.py"))
