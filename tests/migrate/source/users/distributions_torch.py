"""Small models with torch.distributions: policies and a variational autoencoder."""

from __future__ import annotations

import torch
import torch.distributions as D
from torch import nn
from torch.distributions import Bernoulli, Categorical, Normal, kl_divergence


class Gaussian(nn.Module):
    """A policy whose actions are squashed by a tanh, with the correction of their density; `act` never runs."""

    def __init__(self, noisy: bool = False) -> None:
        super().__init__()
        self.noisy = noisy
        self.body = nn.Sequential(nn.Linear(6, 16), nn.ReLU())
        self.mean, self.log_std = nn.Linear(16, 3), nn.Linear(16, 3)

    def spread(self, state: torch.Tensor) -> Normal:
        h = self.body(state)
        return Normal(self.mean(h), self.log_std(h).clamp(-5, 2).exp())

    def act(self, state: torch.Tensor, greedy: bool = False):
        dist = Normal(self.mean(self.body(state)), 0.5)
        return dist.mean if greedy else dist.sample(torch.Size([2]))

    def forward(self, state: torch.Tensor, noise: torch.Tensor):
        dist = self.spread(state)
        x = dist.rsample() if self.noisy else dist.loc + dist.scale * noise
        action = torch.tanh(x)
        density = dist.log_prob(value=x) - torch.log(1 - action.pow(2) + 1e-6)
        return action, density.sum(-1, keepdim=True), dist.entropy(), dist.variance, dist.cdf(noise)


def gaussian():
    torch.manual_seed(0)
    return Gaussian(), (torch.randn(4, 6), torch.randn(4, 3))


def gaussian_drawn():
    torch.manual_seed(0)
    return Gaussian(noisy=True), (torch.randn(4, 6), torch.randn(4, 3))


class Encoder(nn.Module):
    """What a variational autoencoder does with its code; the prior is an attribute, made of numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.code = nn.Linear(6, 8)
        self.decoder = nn.Linear(4, 6)
        self.prior = D.Normal(0.0, 1.0)

    def forward(self, x: torch.Tensor, noise: torch.Tensor):
        mean, log_var = self.code(x).chunk(2, dim=-1)
        posterior = D.Normal(mean, torch.exp(0.5 * log_var))
        z = posterior.mean + posterior.stddev * noise
        other = D.kl_divergence(posterior, D.Normal(torch.zeros_like(mean), torch.ones_like(mean)))
        return self.decoder(z), D.kl_divergence(posterior, self.prior).sum(1), other, self.prior.log_prob(z)


def encoder():
    torch.manual_seed(0)
    return Encoder(), (torch.randn(4, 6), torch.randn(4, 4))


class Discrete(nn.Module):
    """A policy of whole numbers and one of switches, by logits and by probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor, action: torch.Tensor):
        scores = self.head(x)
        dist, same = Categorical(logits=scores), Categorical(torch.softmax(2 * scores, -1))
        on, off = Bernoulli(logits=scores), Bernoulli(probs=torch.sigmoid(-scores))
        switched = (scores > 0).float()
        chosen = dist.log_prob(action) + dist.entropy() + kl_divergence(dist, same)
        return chosen, dist.probs, same.logits, on.log_prob(switched) + off.entropy(), kl_divergence(on, off)


def discrete():
    torch.manual_seed(0)
    return Discrete(), (torch.randn(5, 6), torch.tensor([0, 3, 1, 2, 2]))


class Returned(nn.Module):
    """The distribution itself is what the net returns, as those of PPO do."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.value = nn.Linear(6, 3), nn.Linear(6, 1)

    def forward(self, x: torch.Tensor):
        return Normal(self.mean(x), 0.5), {"value": self.value(x), "policy": Categorical(logits=self.mean(x))}


def returned():
    torch.manual_seed(0)
    return Returned(), (torch.randn(4, 6),)


class Uncovered(nn.Module):
    """Methods that have no counterpart."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor):
        dist = Normal(self.head(x), 1.0)
        wide = dist.expand((2, *x.shape[:-1], 4))
        either = Bernoulli(logits=x) if x.shape[0] > 99 else dist
        return dist.icdf(torch.full_like(x[:, :4], 0.3)) + wide.mean[0] + either.mean + len(dist.event_shape)


def uncovered():
    torch.manual_seed(0)
    return Uncovered(), (torch.randn(3, 6),)
