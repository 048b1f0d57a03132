"""torchvision's architectures, in torchvision's own code, small enough that a step takes a second on two cores.

Narrow where the constructor lets one choose, otherwise as they are; without dropout and stochastic depth. The MindSpore
twin of each function is a function of the same name in one of the mindspore_*.py files beside this one.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn
from torchvision import models
from torchvision.models.alexnet import AlexNet
from torchvision.models.convnext import CNBlockConfig, ConvNeXt
from torchvision.models.densenet import DenseNet
from torchvision.models.efficientnet import EfficientNet, MBConvConfig
from torchvision.models.regnet import BlockParams, RegNet
from torchvision.models.swin_transformer import SwinTransformer
from torchvision.models.vgg import VGG, make_layers
from torchvision.models.vision_transformer import VisionTransformer

CLASSES = 10
HIDDEN = 64  # units of the two hidden layers that AlexNet and VGG have 4096 of


def alexnet() -> nn.Module:
    """AlexNet with its convolutions, and a narrow classifier."""
    model = AlexNet(num_classes=CLASSES, dropout=0.0)
    model.classifier[1] = nn.Linear(256 * 6 * 6, HIDDEN)
    model.classifier[4] = nn.Linear(HIDDEN, HIDDEN)
    model.classifier[6] = nn.Linear(HIDDEN, CLASSES)
    return model


class NarrowVGG(VGG):
    """torchvision's VGG around a classifier of HIDDEN units; its constructor would first draw one of 120 million."""

    def __init__(self, widths: Sequence[int | str]) -> None:
        nn.Module.__init__(self)
        self.features = make_layers(list(widths), batch_norm=True)
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        last = [width for width in widths if isinstance(width, int)][-1]
        self.classifier = nn.Sequential(
            nn.Linear(last * 7 * 7, HIDDEN),
            nn.ReLU(True),
            nn.Dropout(p=0.0),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(True),
            nn.Dropout(p=0.0),
            nn.Linear(HIDDEN, CLASSES),
        )


def vgg11_bn() -> nn.Module:
    """VGG 11 with batch norms, an eighth as wide."""
    return NarrowVGG((8, "M", 16, "M", 32, 32, "M", 64, 64, "M", 64, 64, "M"))


def squeezenet1_1() -> nn.Module:
    """SqueezeNet 1.1 as it is."""
    return models.squeezenet1_1(num_classes=CLASSES, dropout=0.0)


def mobilenet_v2() -> nn.Module:
    """MobileNet V2, a quarter as wide."""
    return models.mobilenet_v2(num_classes=CLASSES, width_mult=0.25, dropout=0.0)


def mobilenet_v3_small() -> nn.Module:
    """MobileNet V3 small, half as wide."""
    return models.mobilenet_v3_small(num_classes=CLASSES, width_mult=0.5, dropout=0.0)


def shufflenet_v2_x0_5() -> nn.Module:
    """ShuffleNet V2 x0.5 as it is."""
    return models.shufflenet_v2_x0_5(num_classes=CLASSES)


def mnasnet0_5() -> nn.Module:
    """MNASNet 0.5 as it is."""
    return models.mnasnet0_5(num_classes=CLASSES, dropout=0.0)


def densenet() -> nn.Module:
    """A DenseNet of four short and narrow blocks."""
    return DenseNet(growth_rate=8, block_config=(2, 3, 3, 2), num_init_features=16, bn_size=2, num_classes=CLASSES)


def googlenet() -> nn.Module:
    """GoogLeNet as it is, without auxiliary heads."""
    return models.googlenet(num_classes=CLASSES, aux_logits=False, init_weights=False, dropout=0.0)


def efficientnet_b0() -> nn.Module:
    """EfficientNet B0, a quarter as wide."""
    stages = [
        (1, 3, 1, 32, 16, 1),
        (6, 3, 2, 16, 24, 2),
        (6, 5, 2, 24, 40, 2),
        (6, 3, 2, 40, 80, 3),
        (6, 5, 1, 80, 112, 3),
        (6, 5, 2, 112, 192, 4),
        (6, 3, 1, 192, 320, 1),
    ]
    setting = [MBConvConfig(*stage, width_mult=0.25) for stage in stages]
    return EfficientNet(setting, dropout=0.0, stochastic_depth_prob=0.0, num_classes=CLASSES)


def regnet_y() -> nn.Module:
    """A RegNetY with the groups of 8 and the squeeze of regnet_y_400mf, narrow and short."""
    params = BlockParams(
        depths=[1, 2, 2, 1],
        widths=[16, 32, 48, 64],
        group_widths=[8] * 4,
        bottleneck_multipliers=[1.0] * 4,
        strides=[2] * 4,
        se_ratio=0.25,
    )
    return RegNet(params, num_classes=CLASSES)


def convnext() -> nn.Module:
    """A ConvNeXt of narrow stages, with the layer scale of 1e-6 that convnext_tiny starts from."""
    stages = [CNBlockConfig(16, 32, 2), CNBlockConfig(32, 48, 2), CNBlockConfig(48, 64, 3), CNBlockConfig(64, None, 1)]
    return ConvNeXt(stages, stochastic_depth_prob=0.0, layer_scale=1e-6, num_classes=CLASSES)


def vit() -> nn.Module:
    """A vision transformer for images of 64 x 64 with three narrow layers."""
    return VisionTransformer(
        image_size=64, patch_size=16, num_layers=3, num_heads=4, hidden_dim=48, mlp_dim=96, num_classes=CLASSES
    )


def swin() -> nn.Module:
    """A Swin transformer with swin_t's windows of 7 x 7, three narrow stages: padded, shifted, and neither."""
    return SwinTransformer(
        patch_size=[4, 4],
        embed_dim=16,
        depths=[2, 2, 2],
        num_heads=[2, 4, 8],
        window_size=[7, 7],
        stochastic_depth_prob=0.0,
        num_classes=CLASSES,
    )
