"""The models of torch_nets in MindSpore, and ways to break them."""

from __future__ import annotations

from typing import Any

from mindspore import Tensor, nn, ops
from msmigrate.training.models import mindspore_models


def linear(inputs: int, outputs: int) -> nn.Dense:
    return nn.Dense(inputs, outputs, has_bias=True, activation=None)


class Block(nn.Cell):
    """A transformer block, attention written out."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm((width,), epsilon=1e-5)
        self.qkv = linear(width, 3 * width)
        self.proj = linear(width, width)
        self.norm2 = nn.LayerNorm((width,), epsilon=1e-5)
        self.fc1 = linear(width, 4 * width)
        self.act = nn.GELU(approximate=False)
        self.fc2 = linear(4 * width, width)
        self.drop = nn.Dropout(p=0.1)

    def construct(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(n, length, 3, self.heads, -1).transpose(2, 0, 3, 1, 4)
        weights = ops.softmax(ops.matmul(q, k.swapaxes(-2, -1)) / (width // self.heads) ** 0.5, -1)
        x = x + self.drop(self.proj(ops.matmul(weights, v).swapaxes(1, 2).reshape(n, length, width)))
        return x + self.drop(self.fc2(self.act(self.fc1(self.norm2(x)))))


class Transformer(nn.Cell):
    """Patches, two blocks, and a head on the mean."""

    def __init__(self, width: int = 32, blocks: int = 2) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, 8, stride=8, pad_mode="valid", has_bias=True)
        self.blocks = nn.SequentialCell([Block(width, 4) for _ in range(blocks)])
        self.norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.head = linear(width, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = ops.flatten(self.patch(x), start_dim=2).swapaxes(1, 2)
        return self.head(self.norm(self.blocks(x)).mean(1))


class Pair(nn.Cell):
    """Two tensors in, a tuple and a dict out; the last output is used by nobody."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = linear(8, 8), linear(8, 8)
        self.idle = linear(8, 3)

    def construct(self, x: Tensor, y: Tensor, *, scale: float = 1.0, mask: Any = None) -> Any:
        if mask is not None:
            y = y * mask
        left = self.left(x) * scale
        return left, {"right": self.right(y), "idle": self.idle(left)}


class Odd(nn.Cell):
    """What makes modules hard to run alone: an embedding, in-place and reused layers, many inputs and outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.word = nn.Embedding(16, 8)
        self.relu = nn.ReLU()
        self.pair = Pair()
        self.idle = nn.Identity()
        self.stack = nn.CellList([linear(8, 8), linear(8, 8)])
        self.bn = nn.BatchNorm2d(3, eps=1e-5, momentum=0.9)
        self.drop = nn.Dropout(p=0.5)
        self.fc = linear(8, 10)

    def construct(self, images: Tensor) -> Tensor:
        ids = (images.abs().max((1, 2)) * 5).astype("int32").clamp(0, 15)
        x = self.relu(self.word(ids))
        y = self.idle(self.bn(images).mean((1, 2))[:, None, :8])
        left, rest = self.pair(x, y, scale=0.5, mask=ops.ones(8))
        x = left + rest["right"]
        for layer in self.stack:
            x = x + self.drop(self.relu(layer(x)))
        return self.fc(ops.silu(x).mean(1))


def build(name: str) -> nn.Cell:
    """A net by name: one of these, or one that a recipe may name."""
    if name == "resnet_tiny":
        return mindspore_models.build(name, num_classes=10, width=4)
    if name == "lenet5":
        return mindspore_models.build(name, channels=3)
    return {"transformer": Transformer, "odd": Odd}[name]()


def _cell(net: nn.Cell, path: str) -> Any:
    return dict(net.cells_and_names())[path]


def bn_eps(net: nn.Cell, path: str, eps: float) -> None:
    norm = _cell(net, path)
    norm.bn_train = ops.BatchNorm(is_training=True, epsilon=eps, momentum=norm.momentum, data_format="NCHW")


def bn_momentum(net: nn.Cell, path: str, momentum: float) -> None:
    norm = _cell(net, path)
    norm.bn_train = ops.BatchNorm(is_training=True, epsilon=1e-5, momentum=momentum, data_format="NCHW")


def maxpool_same(net: nn.Cell) -> None:
    net.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="same")


def residual_forgotten(net: nn.Cell, path: str) -> None:
    block = _cell(net, path)
    block.construct = lambda x: block.relu(
        block.bn3(block.conv3(block.relu(block.bn2(block.conv2(block.relu(block.bn1(block.conv1(x))))))))
        + 0.0 * block.downsample(x)
    )


def shortcut_detached(net: nn.Cell, path: str) -> None:
    block = _cell(net, path)
    block.construct = lambda x: block.relu(
        block.bn3(block.conv3(block.relu(block.bn2(block.conv2(block.relu(block.bn1(block.conv1(x))))))))
        + ops.stop_gradient(block.downsample(x))
    )


def layer_norm_eps(net: nn.Cell, path: str, eps: float) -> None:
    norm = _cell(net, path)
    norm.layer_norm = ops.LayerNorm(begin_norm_axis=-1, begin_params_axis=-1, epsilon=eps)


def gelu_tanh(net: nn.Cell, path: str) -> None:
    _cell(net, path).act = nn.GELU(approximate=True)


def raises(net: nn.Cell, path: str) -> None:
    def construct(x: Tensor) -> Tensor:
        raise ValueError("no such kernel")

    _cell(net, path).construct = construct


def dropout_rate(net: nn.Cell, path: str, rate: float) -> None:
    _cell(net, path).drop = nn.Dropout(p=rate)


def no_scale(net: nn.Cell, path: str) -> None:
    """The attention forgets to divide by the root of its width."""
    block = _cell(net, path)

    def construct(x: Tensor) -> Tensor:
        n, length, width = x.shape
        q, k, v = block.qkv(block.norm1(x)).reshape(n, length, 3, block.heads, -1).transpose(2, 0, 3, 1, 4)
        weights = ops.softmax(ops.matmul(q, k.swapaxes(-2, -1)), -1)
        x = x + block.drop(block.proj(ops.matmul(weights, v).swapaxes(1, 2).reshape(n, length, width)))
        return x + block.drop(block.fc2(block.act(block.fc1(block.norm2(x)))))

    block.construct = construct


def swapped_blocks(net: nn.Cell) -> None:
    """The stem hands its patches to the blocks in another order of axes."""
    net.construct = lambda x: net.head(
        net.norm(net.blocks(ops.flatten(net.patch(x).swapaxes(2, 3), start_dim=2).swapaxes(1, 2))).mean(1)
    )


def maxpool_stride(net: nn.Cell) -> None:
    """Another output shape, which the layers behind it take."""
    net.maxpool = nn.MaxPool2d(kernel_size=3, stride=1, pad_mode="pad", padding=1)


def relu_again(net: nn.Cell, path: str) -> None:
    """A ReLU that is called once more than torch's, and changes nothing."""
    block = _cell(net, path)
    real = block.construct
    block.construct = lambda x: block.relu(real(x))


def relu_functional(net: nn.Cell) -> None:
    """No ReLU of its own: ops.relu, at all places."""
    del net._cells["relu"]

    def construct(x: Tensor) -> Tensor:
        x = net.pool(ops.relu(net.conv1(x)))
        x = net.pool(ops.relu(net.conv2(x)))
        return net.fc3(ops.relu(net.fc2(ops.relu(net.fc1(ops.flatten(x, start_dim=1))))))

    net.construct = construct


def flattened_otherwise(net: nn.Cell) -> None:
    """Channels last before flattening."""

    def construct(x: Tensor) -> Tensor:
        x = net.pool(net.relu(net.conv1(x)))
        x = net.pool(net.relu(net.conv2(x)))
        x = ops.flatten(x.transpose(0, 2, 3, 1), start_dim=1)
        return net.fc3(net.relu(net.fc2(net.relu(net.fc1(x)))))

    net.construct = construct


def pair_swapped(net: nn.Cell) -> None:
    """The right tensor is made of the left input."""
    pair = net.pair
    real = pair.construct

    def construct(x: Tensor, y: Tensor, *, scale: float = 1.0, mask: Any = None) -> Any:
        left, rest = real(x, y, scale=scale, mask=mask)
        return left, {"right": pair.right(left), "idle": rest["idle"]}

    pair.construct = construct


def scale_forgotten(net: nn.Cell) -> None:
    """The pair does not know of a scale."""
    pair = net.pair
    real = pair.construct

    def construct(x: Tensor, y: Tensor, *, mask: Any = None) -> Any:
        return real(x, y, mask=mask)

    pair.construct = construct
    word, relu, idle, bn, fc = net.word, net.relu, net.idle, net.bn, net.fc

    def whole(images: Tensor) -> Tensor:
        ids = (images.abs().max((1, 2)) * 5).astype("int32").clamp(0, 15)
        y = idle(bn(images).mean((1, 2))[:, None, :8])
        left, rest = pair(relu(word(ids)), y, mask=ops.ones(8))
        x = left + rest["right"]
        for layer in net.stack:
            x = x + net.drop(relu(layer(x)))
        return fc(ops.silu(x).mean(1))

    net.construct = whole


def residual_left_out(net: nn.Cell, path: str) -> None:
    """A block that hands on what its branches give, without what it got."""
    block = _cell(net, path)
    real = block.construct
    block.construct = lambda x: real(x) - x


def blocks_in_another_order(net: nn.Cell) -> None:
    first, second = net.blocks[0], net.blocks[1]
    net.blocks.construct = lambda x: first(second(x))


def input_detached(net: nn.Cell, path: str) -> None:
    """Right values; of what a block gets the gradient comes back through its branches alone."""
    block = _cell(net, path)
    real = block.construct
    block.construct = lambda x: real(x) - x + ops.stop_gradient(x)


def gradient_scaled(net: nn.Cell, path: str, factor: float) -> None:
    """Right values, and another number of times the gradient."""
    cell = _cell(net, path)
    real = cell.construct

    def construct(*args: Any, **kwargs: Any) -> Any:
        x = real(*args, **kwargs)
        return factor * x - ops.stop_gradient((factor - 1.0) * x)

    cell.construct = construct


def odd_otherwise(net: nn.Cell, scale: float = 0.5, again: bool = False, detached: bool = False) -> None:
    """Another number handed to the pair, one layer twice instead of two, or a sum of which a half is no branch."""

    def construct(images: Tensor) -> Tensor:
        ids = (images.abs().max((1, 2)) * 5).astype("int32").clamp(0, 15)
        x = net.relu(net.word(ids))
        y = net.idle(net.bn(images).mean((1, 2))[:, None, :8])
        left, rest = net.pair(x, y, scale=scale, mask=ops.ones(8))
        x = left + (ops.stop_gradient(rest["right"]) if detached else rest["right"])
        for layer in [net.stack[0], net.stack[0]] if again else net.stack:
            x = x + net.drop(net.relu(layer(x)))
        return net.fc(ops.silu(x).mean(1))

    net.construct = construct


def idle_left_out(net: nn.Cell, factor: float = 1.0) -> None:
    """No Cell stands in for torch's Identity; factor: what is computed in its place."""
    del net.idle
    object.__setattr__(net, "idle", lambda y: y if factor == 1.0 else y * factor)


def embedding_scaled(net: nn.Cell) -> None:
    word = net.word
    real = word.construct
    word.construct = lambda ids: real(ids) * 1.00001
