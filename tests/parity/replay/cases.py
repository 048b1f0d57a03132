"""What the replay is tested on: case -> the model, its faults (function of mindspore_nets, arguments), and the modules
whose own fault each is."""

from __future__ import annotations

from typing import Any

# what the default suite runs; the others are in the full one
QUICK = ("resnet many", "transformer many", "odd", "odd many")
QUICK += ("by parts: odd", "by parts: odd constant", "by parts: transformer detached")
QUICK += ("by parts: odd idle", "by parts: odd idle scaled")
AHEAD = {"odd": "odd, ahead"}  # case -> the folder of the same where modules ran while MindSpore's side was awaited
Faults = list[tuple[Any, ...]]

PATTERNS = {"resnet narrowed": ("layer3", "layer3.*")}  # case -> the globs that narrow it

CASES: dict[str, tuple[str, Faults, list[str]]] = {
    "resnet": ("resnet_tiny", [], []),
    "resnet many": (
        "resnet_tiny",
        [
            ("bn_eps", "layer1.0.bn2", 1e-3),
            ("bn_eps", "layer3.0.bn1", 1.01e-5),
            ("maxpool_same",),
            ("residual_forgotten", "layer2.0"),
            ("bn_momentum", "layer4.0.bn3", 0.9),
        ],
        ["maxpool", "layer1.0.bn2", "layer2.0", "layer3.0.bn1", "layer4.0.bn3"],
    ),
    "resnet detached": ("resnet_tiny", [("shortcut_detached", "layer2.0")], ["layer2.0"]),
    "resnet slight": ("resnet_tiny", [("bn_eps", "layer3.0.bn1", 1.01e-5)], ["layer3.0.bn1"]),
    "resnet raises": ("resnet_tiny", [("raises", "layer3.0.conv2")], ["layer3.0.conv2"]),
    "resnet narrowed": (
        "resnet_tiny",
        [("bn_eps", "layer1.0.bn2", 1e-3), ("bn_eps", "layer3.0.bn1", 1e-3), ("residual_forgotten", "layer2.0")],
        ["layer3.0.bn1"],
    ),
    "resnet shape": ("resnet_tiny", [("maxpool_stride",)], ["maxpool"]),
    "resnet again": ("resnet_tiny", [("relu_again", "layer3.0")], []),
    "lenet": ("lenet5", [], []),
    "lenet functional": ("lenet5", [("relu_functional",)], []),
    "lenet flatten": ("lenet5", [("flattened_otherwise",)], [""]),
    "transformer": ("transformer", [], []),
    "transformer many": (
        "transformer",
        [("layer_norm_eps", "blocks.0.norm2", 1e-3), ("gelu_tanh", "blocks.1"), ("no_scale", "blocks.1")],
        ["blocks.0.norm2", "blocks.1", "blocks.1.act"],
    ),
    "transformer rate": ("transformer", [("dropout_rate", "blocks.0", 0.2)], ["blocks.0.drop"]),
    "transformer order": ("transformer", [("swapped_blocks",)], [""]),
    "odd": ("odd", [], []),
    "odd many": ("odd", [("embedding_scaled",), ("pair_swapped",)], ["pair", "word"]),
    "odd scale": ("odd", [("scale_forgotten",)], ["pair"]),
    # what only a container shows
    "transformer residual": ("transformer", [("residual_left_out", "blocks.1")], ["blocks.1"]),
    "transformer blocks": ("transformer", [("blocks_in_another_order",)], ["blocks"]),
    "transformer detached": ("transformer", [("input_detached", "blocks.0")], ["blocks.0"]),
    "transformer gradient": ("transformer", [("gradient_scaled", "blocks.1", 1.01)], ["blocks.1"]),
    "odd constant": ("odd", [("odd_otherwise", 0.25)], [""]),
    "odd shared": ("odd", [("odd_otherwise", 0.5, True)], [""]),
    "odd idle": ("odd", [("idle_left_out",)], []),
    "odd idle scaled": ("odd", [("idle_left_out", 1.001)], [""]),
    "odd detached": ("odd", [("odd_otherwise", 0.5, False, True)], [""]),
    "lenet gradient": ("lenet5", [("gradient_scaled", "", 1.001)], [""]),
}
BY_PARTS = "by parts: "  # begins the name of a case in which containers run alone only where they have to
CASES |= {f"{BY_PARTS}{name}": case for name, case in CASES.items()}
