"""Torch models that draw random numbers inside, as their users write them; drawing_mindspore.py has each by hand."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


class Vae(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(36, 24), nn.ReLU())
        self.mu = nn.Linear(24, 6)
        self.logvar = nn.Linear(24, 6)
        self.decoder = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 36), nn.Sigmoid())

    def reparameterize(self, mu: torch.Tensor, logvar: torch.Tensor) -> torch.Tensor:
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def forward(self, x: torch.Tensor) -> Any:
        h = self.encoder(x.flatten(1))
        mu, logvar = self.mu(h), self.logvar(h)
        return self.decoder(self.reparameterize(mu, logvar)), mu, logvar, x.flatten(1)


def vae() -> dict[str, Any]:
    def loss(outputs: Any, labels: torch.Tensor) -> torch.Tensor:
        image, mu, logvar, x = outputs
        divergence = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()
        return F.binary_cross_entropy(image, torch.sigmoid(x)) + divergence

    return {"model": Vae(), "loss": loss}


class Diffusion(nn.Module):
    """Predicts the noise that it has mixed into its input."""

    def __init__(self, steps: int = 50) -> None:
        super().__init__()
        self.steps = steps
        self.time = nn.Embedding(steps, 8)
        self.net = nn.Sequential(nn.Linear(44, 32), nn.SiLU(), nn.Linear(32, 36))

    def forward(self, x: torch.Tensor) -> Any:
        x = x.flatten(1)
        t = torch.randint(0, self.steps, (x.shape[0],))
        noise = torch.randn_like(x)
        kept = (1.0 - (t + 1.0) / (self.steps + 1.0))[:, None].to(x.dtype)
        mixed = kept.sqrt() * x + (1.0 - kept).sqrt() * noise
        return self.net(torch.cat([mixed, self.time(t)], 1)), noise


def diffusion() -> dict[str, Any]:
    """The loss draws, too: it compares projections into random directions."""

    def loss(outputs: Any, labels: torch.Tensor) -> torch.Tensor:
        predicted, noise = outputs
        directions = F.normalize(torch.randn(predicted.shape[1], 5, dtype=predicted.dtype), dim=0)
        return F.mse_loss(predicted, noise) + ((predicted - noise) @ directions).abs().mean()

    return {"model": Diffusion(), "loss": loss}


class DropPath(nn.Module):
    """As it stands in many a repository."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x
        keep = 1.0 - self.rate
        kept = keep + torch.rand((x.shape[0], 1), dtype=x.dtype)
        return x / keep * kept.floor()


class Masks(nn.Module):
    """Trials by every name: of a tensor of chances, of one chance, in place, and as dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(36, 20)
        self.path = DropPath(0.3)
        self.fc2 = nn.Linear(20, 20)
        self.fc3 = nn.Linear(20, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.fc1(x.flatten(1)))
        h = h + self.path(self.fc2(h))
        h = h * torch.bernoulli(torch.full_like(h, 0.75))
        h = h * torch.bernoulli(torch.sigmoid(h.detach()))
        h = h * h.new_empty((h.shape[0], 1)).bernoulli_(0.6)
        h = self.path(h) + h  # a module may run twice
        return self.fc3(F.dropout(h, 0.2, self.training))


class Masked(nn.Module):
    """A masked autoencoder: random tokens are kept, in a random order, in evaluation mode as well."""

    def __init__(self, tokens: int = 12, kept: int = 5) -> None:
        super().__init__()
        self.kept = kept
        self.embed = nn.Linear(3, 16)
        self.position = nn.Parameter(torch.randn(1, tokens, 16) * 0.1)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embed(x.flatten(1).reshape(x.shape[0], -1, 3)) + self.position
        n, tokens, width = x.shape
        order = torch.argsort(torch.rand(n, tokens), dim=1)[:, : self.kept]
        x = torch.gather(x, 1, order[:, :, None].expand(-1, -1, width))
        x = x[:, :, torch.randperm(width)]
        return self.head(self.norm(x).mean(1))


class Sampling(nn.Module):
    """Chooses by chance: places with and without putting back, one-hot rows by Gumbel's trick."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(36, 8)
        self.words = nn.Embedding(8, 10)
        self.head = nn.Linear(18, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits = self.fc(x.flatten(1))
        chances = torch.softmax(logits.detach(), -1)
        several = self.words(torch.multinomial(chances, 3)).mean(1)
        again = self.words(torch.multinomial(chances, 4, replacement=True)).mean(1)
        one = self.words(torch.distributions.Categorical(chances).sample())
        soft = F.gumbel_softmax(logits, tau=0.7)
        return self.head(torch.cat([several + again + one, soft], 1))


class Noise(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((width,), 0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.scale * torch.empty_like(x).normal_()


class Generator(nn.Module):
    """Adds noise in every layer, by one module that it calls three times and another."""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Linear(12, 16)
        self.noise = Noise(16)
        self.layer = nn.Linear(16, 16)
        self.last = Noise(16)
        self.out = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = torch.randn(x.shape[0], 12, dtype=x.dtype)
        h = self.noise(self.start(z)) + x.mean((1, 2, 3))[:, None]
        for _ in range(2):
            h = torch.tanh(self.noise(self.layer(h)))
        return self.out(self.last(h) + h.new_empty(h.shape).uniform_(-0.1, 0.1))


class Unfixed(nn.Module):
    """Draws what cannot be fixed, behind its first layer."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(36, 8)
        self.fc2 = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.fc1(x.flatten(1)))
        return self.fc2(h * torch.distributions.Gamma(2.0 * torch.ones_like(h), torch.ones_like(h)).sample())
