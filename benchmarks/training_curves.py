"""The same training in both frameworks: ResNet-18 on the digits, from equal weights, in equal order, plotted together.

    python benchmarks/training_curves.py [RECIPE] [--steps 200] [--seeds 3] [--plot docs/figures/training_curves.png]

torch trains in a plain loop (curve_torch.py), MindSpore by `msmigrate train`, and torch once more with one thread, to
show how far rounding alone drives two runs apart. Prints markdown.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

HERE = Path(__file__).parent
DEFAULT = HERE.parent / "recipes" / "digits.yaml"
SIDES = ("torch", "torch, one thread", "MindSpore")
SHOWN = HERE.parent / "docs" / "figures" / "training_curves.png"


def both(recipe: Path, seed: int, steps: int, folder: Path) -> dict[str, dict]:
    """Framework -> losses of every step and top-1 on the validation images."""
    here = folder / f"seed{seed}"
    subprocess.run([sys.executable, str(HERE / "curve_torch.py"), recipe, str(seed), str(steps), here], check=True)
    again = folder / f"seed{seed}again"
    single = [sys.executable, str(HERE / "curve_torch.py"), str(recipe), str(seed), str(steps), str(again), "1"]
    subprocess.run(single, check=True)
    tree = yaml.safe_load(recipe.read_text())
    tree["model"]["checkpoint"] = str(here / "start.pth")
    tree["seed"] = seed
    tree["train"] = {"epochs": steps, "max_steps": steps, "log_every": 1, "validate_every": steps}
    own = here / "recipe.yaml"
    own.write_text(yaml.safe_dump(tree))
    command = [sys.executable, "-m", "msmigrate", "train", str(own), "--out", str(here / "run"), "--skip-parity"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    events = [json.loads(line) for line in (here / "run" / "log.jsonl").read_text().splitlines()]
    ours = [event["loss"] for event in events if event["event"] == "step"]
    top1 = next(event["top1"] for event in reversed(events) if event["event"] == "validation")
    theirs = json.loads((here / "losses.json").read_text())
    assert len(ours) == len(theirs) == steps, (len(ours), len(theirs))
    return {
        "torch": {"losses": theirs, "top1": json.loads((here / "predictions.json").read_text())["top1"]},
        "torch, one thread": {
            "losses": json.loads((again / "losses.json").read_text()),
            "top1": json.loads((again / "predictions.json").read_text())["top1"],
        },
        "MindSpore": {"losses": ours, "top1": top1},
    }


def plot(runs: list[dict[str, dict]], file: Path) -> None:
    """The curves of all seeds, torch's over MindSpore's, and how far they part."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(2, 1, figsize=(8, 6), sharex=True, height_ratios=(2, 1))
    for index, run in enumerate(runs):
        colour = f"C{index}"
        above.plot(run["MindSpore"]["losses"], color=colour, linewidth=3, alpha=0.35, label=f"MindSpore, seed {index}")
        above.plot(run["torch"]["losses"], color=colour, linewidth=0.9, label=f"torch, seed {index}")
        for other, style in (("MindSpore", "-"), ("torch, one thread", ":")):
            apart = [abs(a - b) for a, b in zip(run["torch"]["losses"], run[other]["losses"], strict=True)]
            below.semilogy(apart, style, color=colour, linewidth=0.9, label=None if index else f"torch − {other}")
    above.set_ylabel("loss of the step")
    above.legend(ncols=len(runs), fontsize="small")
    below.set_ylabel("|difference| of the losses")
    below.legend(fontsize="small")
    below.set_xlabel("step")
    above.set_title("ResNet-18 on the digits, equal weights and batches")
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--plot", type=Path, default=SHOWN)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        runs = [both(arguments.recipe, seed, arguments.steps, Path(temporary)) for seed in range(arguments.seeds)]
    print(
        "| seed | loss, last 20 steps: torch | torch, one thread | MindSpore | largest of the first 10 differences to "
        "torch: torch, one thread | MindSpore | top-1: torch | torch, one thread | MindSpore |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for seed, run in enumerate(runs):
        sides = [run[name] for name in SIDES]
        late = [f"{statistics.mean(side['losses'][-20:]):.4f}" for side in sides]
        apart = [
            f"{max(abs(a - b) for a, b in zip(sides[0]['losses'][:10], side['losses'][:10], strict=True)):.1e}"
            for side in sides[1:]
        ]
        print(f"| {' | '.join([str(seed), *late, *apart, *(format(side['top1'], '.4f') for side in sides)])} |")
    spread = {name: [run[name]["top1"] for run in runs] for name in SIDES}
    words = "; ".join(f"{name} {min(v):.4f} to {max(v):.4f}" for name, v in spread.items())
    print(f"\nTop-1 over the seeds: {words}.")
    plot(runs, arguments.plot)


if __name__ == "__main__":
    main()
