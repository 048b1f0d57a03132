"""The models of drawing_torch.py in MindSpore: what they draw is drawn by other formulas of the same distribution.

Others have one thing wrong, which their name says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal


class Vae(nn.Cell):
    def __init__(self, wrong: str = "") -> None:
        super().__init__()
        self.wrong = wrong
        self.encoder = nn.SequentialCell(nn.Dense(36, 24), nn.ReLU())
        self.mu = nn.Dense(24, 6)
        self.logvar = nn.Dense(24, 6)
        self.decoder = nn.SequentialCell(nn.Dense(6, 24), nn.ReLU(), nn.Dense(24, 36), nn.Sigmoid())

    def reparameterize(self, mu: Tensor, logvar: Tensor) -> Tensor:
        std = ops.exp(logvar if self.wrong == "std" else 0.5 * logvar)
        if self.wrong == "no noise":
            return mu
        if self.wrong == "uniform":
            return mu + ops.rand(*std.shape) * std
        if self.wrong == "one for each example":
            return mu + ops.randn(std.shape[0], 1) * std
        return ops.normal(std.shape, mu, std)

    def construct(self, x: Tensor) -> Any:
        x = x.reshape(x.shape[0], -1)
        h = self.encoder(x)
        mu, logvar = self.mu(h), self.logvar(h)
        return self.decoder(self.reparameterize(mu, logvar)), mu, logvar, x


def made(wrong: str = "") -> dict[str, Any]:
    factor = -0.4 if wrong == "divergence" else -0.5

    def loss(outputs: Any, labels: Tensor) -> Tensor:
        image, mu, logvar, x = outputs
        divergence = factor * (1 + logvar - mu.pow(2) - logvar.exp()).mean()
        return ops.binary_cross_entropy(image, ops.sigmoid(x), ops.ones_like(image)) + divergence

    return {"model": Vae(wrong), "loss": loss}


def vae() -> dict[str, Any]:
    return made()


def vae_std() -> dict[str, Any]:
    return made("std")


def vae_no_noise() -> dict[str, Any]:
    return made("no noise")


def vae_uniform() -> dict[str, Any]:
    return made("uniform")


def vae_one_each() -> dict[str, Any]:
    return made("one for each example")


def vae_divergence() -> dict[str, Any]:
    return made("divergence")


class Diffusion(nn.Cell):
    def __init__(self, steps: int = 50, drawn: int = 50) -> None:
        super().__init__()
        self.steps, self.drawn = steps, drawn
        self.time = nn.Embedding(steps, 8, embedding_table=Normal(1.0))
        self.net = nn.SequentialCell(nn.Dense(44, 32), nn.SiLU(), nn.Dense(32, 36))

    def construct(self, x: Tensor) -> Any:
        x = x.reshape(x.shape[0], -1)
        noise = ops.standard_normal(x.shape)
        t = ops.floor(ops.rand(x.shape[0]) * self.drawn).astype(mindspore.int32)
        kept = (1.0 - (t + 1.0) / (self.steps + 1.0)).expand_dims(1)
        mixed = kept.sqrt() * x + (1.0 - kept).sqrt() * noise
        return self.net(ops.cat([mixed, self.time(t)], 1)), noise


def denoising(directions: Callable[..., Tensor], **arguments: int) -> dict[str, Any]:
    def loss(outputs: Any, labels: Tensor) -> Tensor:
        predicted, noise = outputs
        into = directions(predicted.shape[1], 5)
        into = into / ops.norm(into, dim=0, keepdim=True)
        return ops.mse_loss(predicted, noise) + ops.matmul(predicted - noise, into).abs().mean()

    return {"model": Diffusion(**arguments), "loss": loss}


def diffusion() -> dict[str, Any]:
    return denoising(ops.randn)


def diffusion_fewer_steps() -> dict[str, Any]:
    return denoising(ops.randn, drawn=40)


def diffusion_loss_uniform() -> dict[str, Any]:
    return denoising(ops.rand)


class DropPath(nn.Cell):
    """The model zoo's: a dropout of ones."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(p=rate)

    def construct(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        return x * self.dropout(ops.ones((x.shape[0], 1), x.dtype))


class Masks(nn.Cell):
    def __init__(self, chance: float = 0.75) -> None:
        super().__init__()
        self.chance = chance
        self.fc1 = nn.Dense(36, 20)
        self.path = DropPath(0.3)
        self.fc2 = nn.Dense(20, 20)
        self.fc3 = nn.Dense(20, 5)

    def construct(self, x: Tensor) -> Tensor:
        h = ops.tanh(self.fc1(x.reshape(x.shape[0], -1)))
        h = h + self.path(self.fc2(h))
        h = h * ops.bernoulli(h, self.chance)
        h = h * (ops.rand_like(h) < ops.sigmoid(ops.stop_gradient(h))).astype(h.dtype)
        h = h * (ops.rand(h.shape[0], 1) < 0.6).astype(h.dtype)
        h = self.path(h) + h
        return self.fc3(ops.dropout(h, p=0.2, training=self.training))


def masks_chance() -> nn.Cell:
    return Masks(0.7)


class Masked(nn.Cell):
    def __init__(self, tokens: int = 12, kept: int = 5, descending: bool = False) -> None:
        super().__init__()
        self.kept, self.descending = kept, descending
        self.embed = nn.Dense(3, 16)
        self.position = Parameter(Tensor(np.random.default_rng(0).normal(0, 0.1, (1, tokens, 16)).astype(np.float32)))
        self.norm = nn.LayerNorm((16,), epsilon=1e-5)
        self.head = nn.Dense(16, 5)

    def construct(self, x: Tensor) -> Tensor:
        x = self.embed(x.reshape(x.shape[0], -1, 3)) + self.position
        n, tokens, width = x.shape
        order = ops.argsort(ops.rand(n, tokens), axis=1, descending=self.descending)[:, : self.kept]
        x = ops.gather_elements(x, 1, ops.broadcast_to(order.expand_dims(-1), (n, self.kept, width)))
        x = ops.gather(x, ops.argsort(ops.rand(width)), 2)
        return self.head(self.norm(x).mean(1))


def masked_other_tokens() -> nn.Cell:
    return Masked(descending=True)


class Sampling(nn.Cell):
    def __init__(self, tau: float = 0.7) -> None:
        super().__init__()
        self.tau = tau
        self.fc = nn.Dense(36, 8)
        self.words = nn.Embedding(8, 10, embedding_table=Normal(1.0))
        self.head = nn.Dense(18, 5)

    def construct(self, x: Tensor) -> Tensor:
        logits = self.fc(x.reshape(x.shape[0], -1))
        chances = ops.softmax(ops.stop_gradient(logits), -1)
        several = self.words(ops.multinomial(chances, 3, replacement=False)).mean(1)
        again = self.words(ops.multinomial(chances, 4)).mean(1)
        one = self.words(ops.multinomial(chances, 1).squeeze(1))
        soft = ops.gumbel_softmax(logits, tau=self.tau)
        return self.head(ops.cat([several + again + one, soft], 1))


def sampling_temperature() -> nn.Cell:
    return Sampling(0.8)


class Noise(nn.Cell):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = Parameter(ops.ones((width,)) * 0.5)

    def construct(self, x: Tensor) -> Tensor:
        return x + self.scale * ops.randn_like(x)


class Generator(nn.Cell):
    """Without a module of its own for the last noise."""

    def __init__(self, shared: bool = False) -> None:
        super().__init__()
        self.shared = shared
        self.start = nn.Dense(12, 16)
        self.noise = Noise(16)
        self.layer = nn.Dense(16, 16)
        self.last = Noise(16)
        self.out = nn.Dense(16, 5)

    def construct(self, x: Tensor) -> Tensor:
        z = ops.randn(1 if self.shared else x.shape[0], 12)
        h = self.noise(self.start(z)) + x.mean((1, 2, 3)).expand_dims(1)
        for _ in range(2):
            h = ops.tanh(self.noise(self.layer(h)))
        spread = ops.uniform(h.shape, Tensor(-0.1, mindspore.float32), Tensor(0.1, mindspore.float32))
        return self.out(self.last(h) + spread)


def generator_one_noise() -> nn.Cell:
    return Generator(shared=True)


class Unfixed(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Dense(36, 8)
        self.fc2 = nn.Dense(8, 5)

    def construct(self, x: Tensor) -> Tensor:
        h = ops.tanh(self.fc1(x.reshape(x.shape[0], -1)))
        return self.fc2(h * ops.random_gamma(Tensor(h.shape, mindspore.int32), Tensor(2.0, mindspore.float32)))
