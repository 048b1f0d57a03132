"""The net of torch_resnet.py as people write it in MindSpore: helpers for layers, names of its own, a mean as the head,
labels smoothed by hand, Momentum over two groups. What `build` is given as `fault` are mistakes of published ports.

ResNet50 is `build(width=64, depths=(3, 4, 6, 3), classes=1000)`.
"""

from typing import Any

from mindspore import Tensor, nn, ops
from mindspore import dtype as mstype
from mindspore.common.initializer import HeNormal, HeUniform, TruncatedNormal, Uniform, XavierUniform


class Layers:
    """Makes the layers, each with the fault that was asked for."""

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def conv(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
        init: Any = XavierUniform() if self.fault == "xavier" else HeNormal(mode="fan_out", nonlinearity="relu")
        if self.fault == "same padding":
            return nn.Conv2d(inputs, outputs, kernel, stride, pad_mode="same", weight_init=init)
        padding = kernel // 2
        return nn.Conv2d(inputs, outputs, kernel, stride, pad_mode="pad", padding=padding, weight_init=init)

    def norm(self, channels: int) -> nn.BatchNorm2d:
        return nn.BatchNorm2d(channels, momentum=0.1 if self.fault == "momentum" else 0.9, eps=1e-5)

    def dense(self, inputs: int, outputs: int) -> nn.Dense:
        limit = inputs**-0.5
        init: Any = HeUniform(5**0.5)
        if self.fault == "truncated":
            init = TruncatedNormal()
        return nn.Dense(inputs, outputs, weight_init=init, bias_init=Uniform(limit))


class ResidualBlock(nn.Cell):
    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int, layers: Layers) -> None:
        super().__init__()
        outputs = width * self.expansion
        pooled = stride != 1 and layers.fault == "pooled stride"
        early = layers.fault == "early stride"
        self.reduce = layers.conv(inputs, width, 1, stride if early else 1)
        self.reduce_norm = layers.norm(width)
        self.spatial = layers.conv(width, width, 3, 1 if pooled or early else stride)
        self.spatial_norm = layers.norm(width)
        self.pool = nn.MaxPool2d(2, 2, pad_mode="same") if pooled else None
        self.expand = layers.conv(width, outputs, 1)
        self.expand_norm = layers.norm(outputs)
        self.act = nn.ReLU()
        self.down_sample = None
        if stride != 1 or inputs != outputs:
            self.down_sample = nn.SequentialCell([layers.conv(inputs, outputs, 1, stride), layers.norm(outputs)])

    def construct(self, x: Tensor) -> Any:
        shortcut = x if self.down_sample is None else self.down_sample(x)
        x = self.act(self.reduce_norm(self.reduce(x)))
        x = self.act(self.spatial_norm(self.spatial(x)))
        if self.pool is not None:
            x = self.pool(x)
        return self.act(self.expand_norm(self.expand(x)) + shortcut)


class ResNet(nn.Cell):
    def __init__(self, width: int, depths: tuple[int, ...], classes: int, fault: str) -> None:
        super().__init__()
        layers = Layers(fault)
        self.stem = layers.conv(3, width, 7, 2)
        self.stem_norm = layers.norm(width)
        self.act = nn.ReLU()
        if fault == "same padding":
            self.stem_pool = nn.MaxPool2d(3, 2, pad_mode="same")
        else:
            self.stem_pool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        stages, inputs = [], width
        for stage, depth in enumerate(depths):
            blocks = []
            for block in range(depth):
                blocks.append(ResidualBlock(inputs, width << stage, 2 if stage and not block else 1, layers))
                inputs = (width << stage) * ResidualBlock.expansion
            stages.append(nn.SequentialCell(blocks))
        self.stages = nn.SequentialCell(stages)
        self.end_point = layers.dense(inputs, classes)

    def construct(self, x: Tensor) -> Any:
        x = self.stages(self.stem_pool(self.act(self.stem_norm(self.stem(x)))))
        return self.end_point(ops.mean(x, (2, 3)))


class SmoothedCrossEntropy(nn.Cell):
    """Cross-entropy of labels that are smoothed by hand over the classes."""

    def __init__(self, classes: int, smoothing: float, fault: str) -> None:
        super().__init__()
        others = classes - 1 if fault == "smoothing" else classes
        off = smoothing / others
        self.on = Tensor(1.0 - smoothing + (0.0 if fault == "smoothing" else off), mstype.float32)
        self.off = Tensor(off, mstype.float32)
        self.classes = classes
        self.loss = nn.SoftmaxCrossEntropyWithLogits(sparse=False, reduction="mean")

    def construct(self, logits: Tensor, labels: Tensor) -> Any:
        return self.loss(logits, ops.one_hot(labels, self.classes, self.on, self.off))


def build(width: int = 8, depths: tuple[int, ...] = (1, 1), classes: int = 10, fault: str = "") -> dict[str, Any]:
    net = ResNet(width, depths, classes, fault)
    plain_names = ("bias",) if fault == "decayed norms" else ("bias", "gamma", "beta")
    plain = [p for p in net.trainable_params() if p.name.endswith(plain_names)]
    decayed = [p for p in net.trainable_params() if not p.name.endswith(plain_names)]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]
    optimizer = nn.Momentum([*groups, {"order_params": net.trainable_params()}], 0.02, 0.9)
    return {"model": net, "loss": SmoothedCrossEntropy(classes, 0.1, fault), "optimizer": optimizer}
