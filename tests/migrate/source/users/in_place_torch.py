"""Models with layers that change their input in place, which is read again under its name or another one."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    """The sum has the ReLU's output twice: x is changed before it is added."""

    def __init__(self, width=6):
        super().__init__()
        self.act = nn.ReLU(inplace=True)
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)

    def forward(self, x):
        x = self.first(x)
        out = self.act(x)
        out = self.second(out)
        return x + out


def in_place_residual():
    return Residual(), (torch.randn(4, 6),)


class OtherNames(nn.Module):
    """Another name for the tensor, an operand, a view and a function's argument."""

    def __init__(self, width=6):
        super().__init__()
        self.act, self.leaky = nn.ReLU(inplace=True), nn.LeakyReLU(0.3, inplace=True)
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.skip = nn.Identity()

    def forward(self, x):
        x = self.first(x)
        kept = x
        x = self.leaky(x)
        x = self.second(x) + kept
        turned = x.view(2, -1)
        y = self.first(self.act(x)) + turned.view(4, -1)
        z = self.skip(y) * self.act(y)
        z = self.second(z)
        return self.first(F.relu(z, inplace=True)) + z


def in_place_other_names():
    return OtherNames(), (torch.randn(4, 6),)


class Containers(nn.Module):
    """The first layer of a Sequential changes its input, which is added to the output."""

    def __init__(self, width=6):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.once = nn.Sequential(nn.ReLU6(inplace=True), nn.Linear(width, width))
        self.leaky = nn.Sequential(nn.LeakyReLU(0.3, inplace=True), nn.Linear(width, width), nn.Tanh())
        self.blocks = nn.ModuleList(nn.Sequential(nn.ReLU(True), nn.Linear(width, width)) for _ in range(2))

    def forward(self, x):
        x = self.first(x)
        x = x + self.once(x)
        x = self.leaky(x) + x
        for block in self.blocks:
            x = block(x) + x
        return x


def in_place_containers():
    return Containers(), (torch.randn(4, 6),)


class NotSeen(nn.Module):
    """Nothing reads what was changed, or reads it before."""

    def __init__(self, width=6):
        super().__init__()
        self.act = nn.ReLU(inplace=True)
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        x = self.act(self.first(x))
        y = self.second(x)
        return y.sum() + self.act(y)


def in_place_not_seen():
    return NotSeen(), (torch.randn(4, 6),)


class Block(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.act, self.layer = nn.ReLU(inplace=True), nn.Linear(width, width)

    def forward(self, x):
        return self.layer(self.act(x))


class NotWritten(nn.Module):
    """A list holds what is changed; a block of the model changes what its caller reads."""

    def __init__(self, width=6):
        super().__init__()
        self.act, self.first, self.block = nn.ReLU(inplace=True), nn.Linear(width, width), Block(width)

    def forward(self, x):
        found = []
        x = self.first(x)
        found.append(x)
        y = self.first(self.act(x))
        y = self.block(y) + found[0] + y
        return (y * 2).mean() + self.act(y) + y


def in_place_not_written():
    return NotWritten(), (torch.randn(4, 6),)


class Within(nn.Module):
    """Calls within expressions write into a tensor, which is read elsewhere: each way ran in one of the models."""

    def __init__(self, way, width=6):
        super().__init__()
        self.way = way
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(1, width))

    def forward(self, x):
        y = self.first(x)
        z = x
        if self.way == "method":
            z = torch.tanh(y.mul_(2)) + y
        elif self.way == "view":
            z = y.view(-1).add_(0.5).sum() * y
        elif self.way == "row":
            z = y[0].sub_(1) + y
        elif self.way == "function":
            z = F.leaky_relu(y, 0.2, inplace=True) + 1
        elif self.way == "list":
            z = [y.clamp_(-0.2, 0.2), y][0]
        elif self.way == "turned":
            torch.t(y).mul_(torch.arange(4.0))
        elif self.way == "data":
            y.data.mul_(3)
        elif self.way == "seen":
            y.unsqueeze(1).data.add_(y.unsqueeze(1) * y.unsqueeze(1))
        elif self.way == "weight":
            self.scale.squeeze(0).data.copy_(x[0]).view_as(self.scale)
        return self.second(z * self.scale + y)


def doubled(x):
    x = x * 1
    return x.mul_(2)


def in_place_within_method():
    return Within("method"), (torch.randn(4, 6),)


def in_place_within_view():
    return Within("view"), (torch.randn(4, 6),)


def in_place_within_row():
    return Within("row"), (torch.randn(4, 6),)


def in_place_within_function():
    return Within("function"), (torch.randn(4, 6),)


def in_place_within_list():
    return Within("list"), (torch.randn(4, 6),)


def in_place_turned():
    return Within("turned"), (torch.randn(4, 6),)


def in_place_data():
    return Within("data"), (torch.randn(4, 6),)


def in_place_seen():
    return Within("seen"), (torch.randn(4, 6),)


def in_place_weight():
    return Within("weight"), (torch.randn(4, 6),)


class Returned(nn.Module):
    """A function changes a tensor of its own, and returns what changes it."""

    def __init__(self, width=6):
        super().__init__()
        self.first = nn.Linear(width, width)

    def forward(self, x):
        y = self.first(x)
        return doubled(y) + y


def in_place_returned():
    return Returned(), (torch.randn(4, 6),)


class OutOfOrder(nn.Module):
    """What is computed with the tensor stands before the call that changes it; a function changes its caller's."""

    def __init__(self, width=6):
        super().__init__()
        self.first = nn.Linear(width, width)

    def forward(self, x):
        y = self.first(x)
        z = y * 3 + y.add_(1)
        return halved(z) + y + z


def halved(x):
    return x.mul_(0.5)


def in_place_out_of_order():
    return OutOfOrder(), (torch.randn(4, 6),)


class Masks(nn.Module):
    """Masks of bytes, as they were before torch had bools."""

    def __init__(self, width=6):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.register_buffer("kept", torch.tensor([1, 0, 1, 1, 0, 1], dtype=torch.uint8))
        self.register_buffer("weights", torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 1.0]))

    def forward(self, x):
        y = self.first(x)
        return y[:, self.kept].sum(1) + y.t()[self.weights.byte()].sum(0)


def in_place_masks_of_bytes():
    return Masks(), (torch.randn(4, 6),)


class Rebound(nn.Module):
    """Names that a branch may give another tensor than the one that is written into: each way ran in one model."""

    def __init__(self, way, width=6):
        super().__init__()
        self.way, self.again = way, 0
        self.first = nn.Linear(width, width)

    def forward(self, x):
        y = self.first(x)
        z = x
        if self.way == "if":
            z = y
            if self.again:
                z = z * 3
            y.add_(1)
        elif self.way == "else":
            if self.again:
                z = y * 3
            else:
                z = y
            y.mul_(2)
        elif self.way == "loop":
            z = y
            for _ in range(self.again):
                z = torch.tanh(z)
            y.sub_(1)
        elif self.way == "pair":
            z, w = y, x
            if self.again:
                z, w = x, w
            y.add_(w)
        elif self.way == "aug":
            z = y
            if self.again:
                z = z * 3
            z += 1
        elif self.way == "row":
            z = y[0]
            if self.again:
                z = y[1]
            z.mul_(2)
        return y + z


class Chosen(nn.Module):
    """The same, as expressions; each way runs in one of the models."""

    def __init__(self, way, width=6):
        super().__init__()
        self.way, self.again = way, 0
        self.first = nn.Linear(width, width)

    def forward(self, x):
        y = self.first(x)
        z = x
        if self.way == "choice":
            z = x if self.again else y
            y.add_(1)
        elif self.way == "or":
            z = self.again or y
            y.mul_(2)
        elif self.way == "walrus":
            if self.again == 0 and (z := y) is not None:
                y.sub_(1)
        elif self.way == "rows":
            for row in y if self.again == 0 else x:
                row.add_(z[0])
        elif self.way == "left":
            for _ in range(3):
                if self.again == 0:
                    z = y
                    break
                z = x * 2
            y.neg_()
        elif self.way == "given":
            z = x if self.again else y
            z = z * 2
            y.add_(1)
        return y + z


class Tried(nn.Module):
    """The same, within `try` and `with`."""

    def __init__(self, width=6):
        super().__init__()
        self.first = nn.Linear(width, width)

    def forward(self, x):
        y = self.first(x)
        z = w = x
        try:
            z = y
        except ValueError:
            z = y * 2
        with torch.enable_grad():
            w = y
        y.add_(1)
        return y * z + w


def in_place_rebound_if():
    return Rebound("if"), (torch.randn(4, 6),)


def in_place_rebound_else():
    return Rebound("else"), (torch.randn(4, 6),)


def in_place_rebound_loop():
    return Rebound("loop"), (torch.randn(4, 6),)


def in_place_rebound_pair():
    return Rebound("pair"), (torch.randn(4, 6),)


def in_place_rebound_aug():
    return Rebound("aug"), (torch.randn(4, 6),)


def in_place_rebound_row():
    return Rebound("row"), (torch.randn(4, 6),)


def in_place_rebound_none():
    return Rebound(""), (torch.randn(4, 6),)


def in_place_chosen():
    return Chosen(""), (torch.randn(4, 6),)


def in_place_chosen_or():
    return Chosen("or"), (torch.randn(4, 6),)


def in_place_tried():
    return Tried(), (torch.randn(4, 6),)


def sharply(x, inplace=False):
    if inplace:
        return x.add_(3.0).clamp_(0.0, 6.0).div_(6.0)
    return F.relu6(x + 3.0) / 6.0


class Gated(nn.Module):
    """Returns from one branch what a function makes that may write into its argument, and reads that in the other."""

    def __init__(self, gated=True):
        super().__init__()
        self.mix, self.gated = nn.Linear(4, 4), gated

    def forward(self, x):
        y = self.mix(x)
        if self.gated:
            return sharply(y)
        return y * 2


def gated():
    return Gated(), (torch.randn(3, 4),)


class Bouncing(nn.Module):
    """A method writes into its arguments, and both names get what it returns."""

    def __init__(self, wall: float = 0.5) -> None:
        super().__init__()
        self.wall = wall
        self.pull = nn.Parameter(torch.tensor(0.3))

    def bounce(self, place, speed):
        over = place > self.wall
        place[over] = 2 * self.wall - place[over]
        speed[over] = -torch.abs(speed[over])
        return place, speed

    def forward(self, place, speed):
        for _ in range(3):
            speed = speed + self.pull * place
            place = place + 0.1 * speed
            place, speed = self.bounce(place, speed)
        return torch.cat((place, speed), -1)


def in_place_bounced():
    torch.manual_seed(2)
    return Bouncing(), (torch.rand(2, 3), torch.randn(2, 3))


class HalfBouncing(Bouncing):
    """One name gets what the method returns, and the other tensor is read as it was given."""

    def forward(self, place, speed):
        place, speed = place * 1.5, speed * 1
        place, _ = self.bounce(place, speed)
        return torch.cat((place, speed * self.pull), -1)


def in_place_half_bounced():
    torch.manual_seed(2)
    return HalfBouncing(), (torch.rand(2, 3), torch.randn(2, 3))


class MaskedAsItRuns(nn.Module):
    """Takes parts of a weight out of its layer at every run, past the gradient."""

    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x):
        self.fc.weight.data[:, 2:].zero_()
        self.out.weight.data[0] = x.mean() * 0.1
        return self.out(torch.tanh(self.fc(x)))


def in_place_masked_weight():
    torch.manual_seed(2)
    return MaskedAsItRuns(), (torch.randn(5, 4),)


class Limited(nn.Module):
    """Writes into its weights at every run: parts and wholes, by methods and operators, in loops and by a helper."""

    def __init__(self, far=False):
        super().__init__()
        self.conv = nn.Conv1d(1, 2, 3, padding=1)
        self.fc, self.out = nn.Linear(4, 6), nn.Linear(6, 3)
        self.scale = nn.Parameter(torch.rand(6) + 0.5)
        self.register_buffer("mask", (torch.arange(24).reshape(6, 4) % 3 > 0).float())
        self.far = far

    def limit(self, bound=0.4):
        for weight in self.parameters():
            weight.data.clamp_(-bound, bound)

    def shrink(self, weight):
        weight.data[:, 1] *= 0.5
        weight.data.mul_(0.9)

    def forward(self, x):
        self.conv.weight.data[:, :, -1] = 0
        self.conv.weight.data[0].mul_(0.5)
        self.fc.weight.data *= self.mask
        for layer in (self.fc, self.out):
            layer.bias.data[1:] += 0.1
            layer.bias.data.copy_(layer.bias.data * 0.5)
        self.shrink(self.out.weight)
        with torch.no_grad():
            self.scale[0] = 1.5
            self.scale.div_(self.scale.norm())
            self.mask[0] = 1
        if self.far:
            self.out.weight.data = self.out.weight.data * 2
        return self.out(torch.tanh(self.fc(self.conv(x[:, None]).sum(1))) * self.scale)


def in_place_limited():
    torch.manual_seed(2)
    return Limited(), (torch.randn(5, 4),)


class PastGradient(nn.Module):
    """Changes the values of tensors whose gradient it leaves alone, also where it did not run."""

    def __init__(self, far=False):
        super().__init__()
        self.fc, self.out, self.far = nn.Linear(4, 6), nn.Linear(6, 3), far
        self.register_buffer("shift", torch.zeros(6))

    def forward(self, x):
        y = self.fc(x)
        y.data[:, 0] = 0.5
        y.data[y.data < -0.3] = 0.1
        y.data[1:] *= 2
        y.data += 0.25
        y.data = y.data * 1.5
        kept = (y > 0).long()
        kept.data[0] = 2
        kept.data = kept.data + 1
        y = y * kept
        self.shift.data[0] = 3
        self.shift.data = self.shift.data + 0.1
        if self.far:
            y.data *= 3
            y.data = y.data - 1
        return self.out(y * y * 0.1 + self.shift)


def in_place_past_gradient():
    torch.manual_seed(2)
    return PastGradient(), (torch.randn(5, 4),)


def in_place_past_gradient_far():
    torch.manual_seed(2)
    return PastGradient(far=True), (torch.randn(5, 4),)
