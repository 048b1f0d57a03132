"""Small models with autograd.Functions whose gradient is one of their own."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Function


class Rounded(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad  # straight through


class Reversed(torch.autograd.Function):
    """Reverses the gradient."""

    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        output = grad_output.neg() * ctx.alpha
        return output, None


class Binarized(Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.sign()

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input.ge(1)] = 0
        grad_input[input.le(-1)] = 0
        return grad_input


class Softer(Function):
    @staticmethod
    def forward(ctx, x, w, k=3):
        e = torch.exp(-x.abs())
        y = e * w * k
        ctx.save_for_backward(e, w, y)
        ctx.k, ctx.size = k, 3
        if k > 2:
            ctx.sharp = True
        return y, e + 1

    @staticmethod
    def backward(ctx, gy, ge):
        e, w, _ = ctx.saved_tensors
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = gy * w * e * ctx.k + ge
        if ctx.needs_input_grad[1]:
            gw = gy * e
        if ctx.sharp:
            gx = gx * 0.5
        return gx, gw, None


class Steeper(Function):
    @staticmethod
    def forward(ctx, x):
        result = 1 / (1 + torch.exp(-x))
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result * (1 - result) * 1.5


binarize = Binarized.apply


class OfItsOwn(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 3)
        self.w = nn.Parameter(torch.rand(6) + 0.5)
        self.rounded = Rounded.apply

    def forward(self, x):
        x = binarize(self.a(x))
        y, e = Softer.apply(self.a.weight.mean() + x * 0.3, self.w)
        return self.b(Reversed.apply(y, 0.5) + self.rounded(e * 3) * 0.1 + Steeper.apply(y))


def of_its_own():
    torch.manual_seed(0)
    return OfItsOwn(), (torch.randn(5, 4),)


def surrogate(x, alpha):
    return alpha / 2 / (1 + (math.pi / 2 * alpha * x) ** 2)


class Spike(Function):
    @staticmethod
    def forward(ctx, membrane, alpha=2.0):
        if membrane.requires_grad:
            ctx.save_for_backward(membrane)
        ctx.alpha = alpha
        return (membrane >= 0).to(membrane)

    @staticmethod
    def backward(ctx, grad_output):
        grad_input = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output * surrogate(ctx.saved_tensors[0], ctx.alpha)
        return grad_input, None


class Nearest(Function):
    """The nearest rows of a table, whose gradient goes straight through, and to the rows."""

    @staticmethod
    def forward(ctx, inputs, table):
        with torch.no_grad():
            flat = inputs.view(-1, table.size(1))
            distances = (table**2).sum(1) + (flat**2).sum(1, keepdim=True) - 2 * flat @ table.t()
            _, places = torch.min(distances, dim=1)
            rows = torch.index_select(table, 0, places)
            ctx.mark_non_differentiable(places)
            ctx.save_for_backward(places, table)
            return rows.view_as(inputs), places

    @staticmethod
    def backward(ctx, grad_output, _):
        places, table = ctx.saved_tensors
        of_table = torch.zeros_like(table)
        of_table.index_add_(0, places, grad_output.contiguous().view(-1, table.size(1)))
        return grad_output.clone(), of_table


class LowerBound(Function):
    """Is the derivative of its forward for gradients of one sign only."""

    @staticmethod
    def forward(ctx, inputs, bound):
        b = torch.ones_like(inputs) * bound
        ctx.save_for_backward(inputs, b)
        return torch.max(inputs, b)

    @staticmethod
    def backward(ctx, grad_output):
        inputs, b = ctx.saved_tensors
        through = (inputs >= b) | (grad_output < 0)
        return through.type(grad_output.dtype) * grad_output, None


class Clipped(Function):
    """Is the derivative of its forward for small gradients only."""

    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, grad):
        return grad.clamp(-5, 5)


class Mish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.tanh(F.softplus(x))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        t = torch.tanh(F.softplus(x))
        return grad * (t + x * torch.sigmoid(x) * (1 - t * t))


class Spiking(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 3)
        self.spike = Spike.apply
        self.rows = nn.Parameter(torch.randn(7, 6))

    def forward(self, x):
        h = self.a(x)
        near, _ = Nearest.apply(h, self.rows)
        low = LowerBound.apply(h, 0.1)
        return self.b(Mish.apply(near + low) + self.spike(h - 0.5) + 40 * Clipped.apply(h))


def spiking():
    torch.manual_seed(0)
    return Spiking(), (torch.randn(5, 4),)


class Steep(Function):
    """Has numbers of its own."""

    scale = 10.0
    width: float = 0.5

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        out = torch.zeros_like(x)
        out[x > 0] = 1.0
        return out

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad.clone() / (Steep.scale * torch.abs(x) + Steep.width) ** 2


class Changed(Function):
    """Keeps what it has changed in place, and is given a number or a tensor."""

    @staticmethod
    def forward(ctx, x, k):
        x = x.clone()
        x[x > 1] = 1
        ctx.save_for_backward(x)
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        of_factor = None
        if ctx.needs_input_grad[1]:
            of_factor = (grad * x).sum() * 2
        return grad * x * ctx.k, of_factor


class Shadowed(Function):
    """Calls something else by the names of its inputs in the backward."""

    @staticmethod
    def forward(ctx, x, w, alpha):
        ctx.save_for_backward(x, w)
        ctx.alpha = alpha
        return x * w * alpha

    @staticmethod
    def backward(ctx, grad):
        alpha = ctx.alpha + 1
        w, x = ctx.saved_tensors
        return grad * x * alpha * ctx.alpha, grad * w * 3, None


class OfNumbers(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 6)
        self.k = nn.Parameter(torch.tensor(1.5))
        self.w = nn.Parameter(torch.rand(6))

    def forward(self, x):
        h = self.a(x)
        h = Shadowed.apply(h, self.w, 0.5)
        return Steep.apply(h) + Changed.apply(h, 2.0) + Changed.apply(h, self.k)


def of_numbers():
    torch.manual_seed(0)
    return OfNumbers(), (torch.randn(5, 4),)


def between(x):
    return torch.rand_like(x) + 1


class Noisy(Function):
    """Draws, by a function that it calls, so that it must not run once more for its backward."""

    @staticmethod
    def forward(ctx, x):
        scale = between(x)
        ctx.save_for_backward(scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad):
        (scale,) = ctx.saved_tensors
        return grad * scale * 2


class HandedOn(Function):
    @staticmethod
    def forward(ctx, x):
        keep(ctx, x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad + ctx.saved_tensors[0]


class Renamed(Function):
    @staticmethod
    def forward(ctx, input):
        return input * 1

    @staticmethod
    def backward(ctx, input):
        return input * 2


class Inner(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        def twice(v):
            return v * 2

        return twice(grad)


def keep(ctx, x):
    ctx.save_for_backward(x)


class Refused(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 6)

    def forward(self, x):
        return Noisy.apply(self.a(x)) + (HandedOn.apply(x) + Renamed.apply(x) + Inner.apply(x)).sum()


def refused_functions():
    return Refused(), (torch.randn(5, 4),)
