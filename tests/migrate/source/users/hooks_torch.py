"""Small torch models with hooks: functions that are called with a gradient, or with what a layer is given."""

from functools import partial
from math import sqrt

import torch
import torch.nn.functional as F
from torch import nn


class Scaled(nn.Module):
    """Gradients of activations that are changed, also of one that is used before; one where no run comes by."""

    def __init__(self, scale=0.5, clips=False):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.scale = scale
        self.clips = clips

    def shrink(self, grad, factor):
        return grad * factor

    def forward(self, x):
        total = 0
        for place in range(3):
            x = torch.tanh(self.a(x))
            total = total + x.sum(1, keepdim=True)
            if x.requires_grad:
                x.register_hook(partial(self.shrink, factor=self.scale**place))
            if self.clips and x.requires_grad:
                x.register_hook(lambda g: g.clamp(-1, 1).mean(0, keepdim=True).expand_as(g))
        if self.training and torch.is_grad_enabled():
            total.register_hook(lambda grad: grad * self.scale)
        return total + x


def gradients_of_activations():
    return Scaled(), [torch.randn(2, 6)]


class Kept(nn.Module):
    """A gradient that is only kept, by a method, by a function inside of one, and by torch itself."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 5, 3)
        self.b = nn.Linear(5, 5)
        self.c = nn.Linear(5, 3)
        self.gradient = None
        self.gradients = {}
        self.last = []
        self.b.register_full_backward_hook(self.keep_last)
        self.c.register_backward_hook(self.keep_first)

    def keep(self, grad):
        self.gradient = grad

    def keep_first(self, module, grad_input, grad_output):
        self.last.append(grad_output)

    def keep_last(self, module, grad_input, grad_output):
        self.last.append(grad_output[0].detach())

    def keep_as(self, name):
        def keep(grad):
            self.gradients[name] = grad

        return keep

    def forward(self, x):
        h = self.a(x)
        if h.requires_grad:
            h.register_hook(self.keep)
            handle = h.register_hook(self.keep_as("h"))
        m = torch.relu(h).mean((2, 3))
        if m.grad_fn is not None:
            m.retain_grad()
        return self.c(self.b(m))


def gradients_that_are_kept():
    return Kept(), [torch.randn(4, 3, 6, 6)]


class TwoFactors(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(6, 6)

    def forward(self, x, y, flag=1.0):
        return self.l(x) * y * flag


class OfLayers(nn.Module):
    """What a layer's hook makes of the gradients: by a method, by a lambda, of several inputs, and before the layer."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(6, 6)
        self.two = TwoFactors()
        self.a = nn.Linear(6, 5)
        self.two.register_full_backward_hook(self.swap)
        self.stem.register_full_backward_hook(lambda module, grad_input, grad_output: None)
        self.a.register_full_backward_hook(lambda m, grad_input, grad_output: (grad_input[0] * 0.25,))
        self.a.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 2,))

    def swap(self, module, grad_input, grad_output):
        first, second, *_ = grad_input
        return (second * 0.5, first, *_)

    def forward(self, x):
        h = self.stem(x)
        return self.a(self.two(torch.tanh(h), torch.sigmoid(h), 3.0))


def gradients_of_layers():
    return OfLayers(), [torch.randn(2, 6)]


class Guided(nn.Module):
    """Guided backpropagation: what a forward hook keeps is what the backward hook reads."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))
        self.outputs = []
        for m in self.net.modules():
            if isinstance(m, nn.ReLU):
                m.register_forward_hook(self.note)
                m.register_full_backward_hook(self.positive)

    def note(self, module, inputs, output):
        self.outputs.append(output.detach())

    def positive(self, module, grad_input, grad_output):
        kept = self.outputs.pop()
        return (F.relu(grad_input[0]) * (kept > 0).float(),)

    def forward(self, x):
        self.outputs = []
        return self.net(x)


def guided_gradients():
    return Guided(), [torch.randn(2, 6)]


class OfWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 5)
        self.net = nn.Sequential(nn.Conv1d(5, 4, 1), nn.ReLU(), nn.Conv1d(4, 2, 1))
        mask = torch.ones(5, 6)
        mask[:, ::2] = 0
        self.register_buffer("mask", mask)
        self.a.weight.register_hook(lambda grad: grad * self.mask)
        for p in self.net.parameters():
            p.register_hook(lambda grad: torch.clamp(grad, -0.1, 0.1))

    def forward(self, x):
        return self.net(self.a(x).transpose(1, 2))


def gradients_of_weights():
    return OfWeights(), [torch.randn(2, 3, 6)]


class OfAWeightWithAnotherShape(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv1d(3, 3, 3)
        self.register_buffer("mask", torch.ones(3, 3, 3).tril())
        self.a.weight.register_hook(lambda grad: grad * self.mask)

    def forward(self, x):
        return self.a(x)


def gradient_of_another_shape():
    return OfAWeightWithAnotherShape(), [torch.randn(2, 3, 8)]


class OfTheLastOperation(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(6, 6)
        self.a = nn.Tanh()
        self.a.register_backward_hook(lambda m, grad_input, grad_output: (grad_input[0] * 2,))

    def forward(self, x):
        return self.a(self.stem(x))


def gradients_of_the_last_operation():
    return OfTheLastOperation(), [torch.randn(2, 6)]


class EqualRate:
    """A weight that is computed before each call, as StyleGAN's layers have it."""

    def __init__(self, name):
        self.name = name

    def weight_of(self, module):
        weight = getattr(module, self.name + "_orig")
        fan_in = weight.data.size(1) * weight.data[0][0].numel()
        return weight * sqrt(2 / fan_in)

    @staticmethod
    def apply(module, name):
        function = EqualRate(name)
        weight = getattr(module, name)
        del module._parameters[name]
        module.register_parameter(name + "_orig", nn.Parameter(weight.data))
        module.register_forward_pre_hook(function)

    def __call__(self, module, inputs):
        setattr(module, self.name, self.weight_of(module))


def with_equal_rate(module, name="weight"):
    EqualRate.apply(module, name)
    return module


class EqualLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = with_equal_rate(nn.Conv2d(3, 4, 3, padding=1))
        self.head = nn.Linear(4, 2)
        with_equal_rate(self.head)
        self.last = nn.Linear(2, 2)
        with_equal_rate(self.last)

    def forward(self, x):
        return self.last(self.head(self.conv(x).mean((2, 3))))


def weights_computed_by_a_hook():
    return EqualLayers(), [torch.randn(2, 3, 5, 5)]


class ByHooks(nn.Module):
    """Features of layers by their names, and inputs and outputs that hooks change, also of the net itself."""

    def __init__(self, names=("0", "2")):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3), nn.ReLU())
        self.features = {}
        self.order = []
        for name, layer in self.net.named_children():
            if name in names:
                layer.register_forward_hook(self.kept_as(name))
        self.head = nn.Linear(5, 2)
        self.head.register_forward_pre_hook(lambda module, inputs: (inputs[0] * 0.5,))
        self.head.register_forward_hook(self.doubled)
        self.register_forward_pre_hook(self.centred)

    @staticmethod
    def centred(module, inputs):
        (x,) = inputs
        return x - x.mean()

    def doubled(self, module, inputs, output):
        self.order.append("doubled")
        return output * 2 + inputs[0].mean()

    def kept_as(self, name):
        def keep(module, inputs, output):
            self.features[name] = output

        return keep

    def forward(self, x):
        self.features = {}
        y = self.net(x).mean((2, 3))
        return self.head(y), self.head.forward(y), self.features["0"].mean(), self.features["2"].mean((2, 3))


def features_by_hooks():
    return ByHooks(), [torch.randn(2, 3, 7, 7)]


class Removed(nn.Module):
    """A hook that is registered and removed as the model runs, those that get arguments by name, and in place."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = TwoFactors()
        self.b.register_forward_pre_hook(self.before, with_kwargs=True)
        self.b.register_forward_hook(self.after, with_kwargs=True)
        self.a.register_forward_hook(self.in_place)

    def before(self, module, args, kwargs):
        kwargs["y"] = kwargs["y"] * 2
        return args, kwargs

    def after(self, module, args, kwargs, output):
        return output + kwargs["y"]

    def in_place(self, module, inputs, output):
        output.mul_(2)

    def forward(self, x):
        kept = []
        handle = self.a.register_forward_hook(lambda m, i, o: kept.append(o))
        y = self.b(self.a(x), y=torch.sigmoid(x))
        handle.remove()
        return y, kept[0]


def hooks_that_are_removed():
    return Removed(), [torch.randn(2, 6)]


class OfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.MultiheadAttention(6, 2, batch_first=True)
        self.b = nn.LSTM(6, 4, batch_first=True)
        self.maps = []
        self.a.register_forward_hook(lambda m, i, o: self.maps.append(o[1]))
        self.b.register_forward_hook(lambda m, i, o: (o[0] * 2, o[1]))

    def forward(self, x):
        y, (h, c) = self.b(self.a(x, x, x)[0])
        return y, h, self.maps.pop()


def outputs_of_attention_by_a_hook():
    return OfAttention(), [torch.randn(2, 3, 6)]


class InputsOfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.MultiheadAttention(6, 2, batch_first=True)
        self.a.register_forward_pre_hook(lambda m, inputs: tuple(x * 2 for x in inputs))

    def forward(self, x):
        return self.a(x, x, x)[0]


def inputs_of_attention_by_a_hook():
    return InputsOfAttention(), [torch.randn(2, 3, 6)]


class Idle(nn.Module):
    """Hooks in branches that did not run."""

    def __init__(self, mode="none"):
        super().__init__()
        self.stem = nn.Linear(6, 6)
        self.a = nn.Linear(6, 6)
        self.mode = mode
        if mode == "module":
            self.a.register_full_backward_hook(self.of_module)

    def of_module(self, module, grad_input, grad_output):
        return (grad_input[0] / grad_input[0].norm(dim=1, keepdim=True),)

    def normed(self, grad):
        return grad / (grad.norm(dim=-1, keepdim=True) + 1e-6)

    def forward(self, x):
        h = torch.tanh(self.stem(x))
        if self.mode == "tensor" and h.requires_grad:
            h.register_hook(self.normed)
        return self.a(h)


def hooks_in_other_branches():
    return Idle(), [torch.randn(2, 6)]


def hooks_by_an_argument():
    return Idle("module"), [torch.randn(2, 6)]


def hooks_on_a_tensor_by_an_argument():
    return Idle("tensor"), [torch.randn(2, 6)]


class Unguarded(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)

    def forward(self, x):
        h = self.a(x)
        h.register_hook(lambda grad: grad * 2)
        return h


def runs_with_gradients_alone():
    return Unguarded(), [torch.randn(2, 6)]
