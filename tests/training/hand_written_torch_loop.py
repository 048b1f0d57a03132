"""Training as people write it by hand, with torch's and timm's own parts and nothing of msmigrate's step.

`python hand_written_torch_loop.py FOLDER` runs two loops in float32 and in float64 and writes loop.npz. The recipes
"loop" and "loop in half" of option_cases.py say the same, and MindSpore's steps are held against these loops.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from step_cases import CASES, batches, sampled
from step_torch_models import start
from timm.utils import ModelEmaV2, ModelEmaV3
from torch import nn
from torch.nn.utils import clip_grad_norm_

ACCUMULATE = 2
MAX_NORM = 0.5


def train(name: str, dtype: torch.dtype, found: dict[str, np.ndarray], skipped: tuple[int, ...] = ()) -> None:
    """Take five steps. In the steps of `skipped` the loss is infinite: what overflows in float16 alone."""
    half = name == "loop in half" and dtype == torch.float32
    model = start(CASES[name], dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
    if name == "loop":
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
        ema = ModelEmaV2(model, decay=0.9)
    else:
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**34, backoff_factor=2.0**-10, growth_interval=2)
        ema = ModelEmaV3(model, decay=0.9, use_warmup=True)
    criterion = nn.CrossEntropyLoss()
    model.train()
    for step, batch in enumerate(batches(CASES[name])):
        images, targets = torch.from_numpy(batch.images).to(dtype), torch.from_numpy(batch.labels).to(dtype)
        optimizer.zero_grad()
        total, outputs = 0.0, []
        for x, y in zip(images.chunk(ACCUMULATE), targets.chunk(ACCUMULATE), strict=True):
            with torch.autocast("cpu", torch.float16, enabled=half):
                logits = model(x)
            outputs.append(logits.detach().to(dtype))
            loss = criterion(logits.to(dtype), y) / ACCUMULATE
            total += loss.item()
            scaler.scale(loss * float("inf") if step in skipped else loss).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), MAX_NORM)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        if isinstance(ema, ModelEmaV3):
            ema.update(model, step=step + 1)
        else:
            ema.update(model)
        place = f"{name}/{str(dtype)[-2:]}/{step}"
        found[f"{place}/loss"] = np.float64(total)
        found[f"{place}/logits"] = torch.cat(outputs).numpy()
        found[f"{place}/scaler/scale"] = np.float64(scaler.get_scale())
        found[f"{place}/rates/all"] = np.float64(scheduler.get_last_lr()[0])
        momenta = {key: optimizer.state[p]["momentum_buffer"] for key, p in model.named_parameters() if step > 1}
        for kind, tensors in (
            ("weights", model.state_dict()),
            ("ema", ema.module.state_dict()),
            ("state/momentum_buffer", momenta),
        ):
            for key, tensor in tensors.items():
                if "num_batches" not in key:
                    found[f"{place}/{kind}/{key}"] = sampled(tensor.detach().numpy())


def main(folder: Path) -> None:
    """Run both loops in both precisions."""
    torch.set_num_threads(1)
    # said where the scale is still too large for the first update: a skipped update is no mistake
    warnings.filterwarnings("ignore", "Detected call of `lr_scheduler.step", UserWarning)
    found: dict[str, np.ndarray] = {}
    for name, skipped in (("loop", ()), ("loop in half", (0, 1))):
        train(name, torch.float32, found)
        train(name, torch.float64, found, skipped)
    np.savez(folder / "loop.npz", **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
