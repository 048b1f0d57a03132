"""Small models that compute with complex tensors, as torch.fft gives them."""

from __future__ import annotations

import torch
from torch import nn


class Spectrum(nn.Module):
    """What one asks of a spectrum: absolute values in each spelling, and the two parts; of a real tensor its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor):
        spectrum = torch.fft.rfft(self.first(x).real, dim=1)
        both = torch.view_as_real(spectrum).sum(-1)
        best = torch.topk(abs(spectrum).mean(0).mean(-1), 2)[1].detach().cpu().numpy()
        return abs(spectrum) + spectrum.abs() * torch.abs(spectrum), spectrum.real * spectrum.imag, both[:, best]


def spectrum():
    torch.manual_seed(0)
    return Spectrum(), (torch.randn(3, 8, 6),)


class Filter(nn.Module):
    """A spectrum times weights, complex ones and real ones, and a quotient of two."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(count // 2 + 1, 6, 2))
        self.scale = nn.Parameter(torch.rand(6) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = torch.fft.rfft(x, dim=1, norm="ortho")
        found = found * torch.view_as_complex(self.weight) * 2.0
        found *= self.scale
        found = torch.mul(found, self.scale) / (torch.abs(found) + 1)
        found = found / (2 + torch.complex(self.scale, -self.scale).conj())
        return torch.fft.irfft(found, n=x.shape[1], dim=1, norm="ortho")


def filtered():
    torch.manual_seed(0)
    return Filter(8), (torch.randn(3, 8, 6),)


class Modes(nn.Module):
    """The low frequencies alone, mixed by a product of matrices, put among zeros."""

    def __init__(self, kept: int) -> None:
        super().__init__()
        self.kept = kept
        self.weight = nn.Parameter(torch.randn(3, 4, kept, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        low = torch.fft.rfft(x)[..., : self.kept]
        mixed = torch.einsum("nik,iok->nok", low, torch.view_as_complex(self.weight))
        whole = torch.zeros(x.shape[0], mixed.shape[1], x.shape[-1] // 2 + 1, dtype=torch.cfloat)
        whole[..., : self.kept] = mixed
        return torch.fft.irfft(whole, n=x.size(-1))


def modes():
    torch.manual_seed(0)
    return Modes(3), (torch.randn(2, 3, 10),)


class Powers(nn.Module):
    """What MindSpore has no gradient of where it is complex."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = torch.fft.fft(self.first(x))
        return torch.prod(found, 1).real + (found**2).imag.sum(1)


def powers():
    return Powers(), (torch.randn(2, 4),)


def cosines(size: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """The matrix of a discrete cosine transform, by the Fourier transform of what is mirrored."""
    rows = torch.eye(size, dtype=dtype)
    found = torch.fft.fft(torch.cat([rows, rows.flip([1])], dim=-1), dim=-1)[:, :size]
    turn = torch.tensor(-1j, dtype=torch.complex64) * torch.pi * torch.arange(size)[None, :] / (2 * size)
    found = (found * torch.exp(turn)).real
    found[:, 0] = found[:, 0] * torch.sqrt(torch.tensor(1 / (4 * size)))
    found[:, 1:] = found[:, 1:] * torch.sqrt(torch.tensor(1 / (2 * size)))
    return found.contiguous()


class Cosine(nn.Module):
    """Frequencies of blocks, by a matrix that is computed as the model is made; an infinity for what is left out."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("matrix", cosines(size).T.contiguous())
        self.mix = nn.Linear(size, size)

    def forward(self, x: torch.Tensor):
        found = nn.functional.linear(x, self.matrix).transpose(-1, -2)
        found = self.mix(found) * torch.cos(torch.pi * x)
        return found, found.masked_fill(found < 0, -torch.inf).softmax(-1)


def cosine():
    torch.manual_seed(0)
    return Cosine(8), (torch.rand(3, 8, 8),)


class Shifted(nn.Module):
    """Spectra with their zero frequency in the middle, several times, with axes and without."""

    def __init__(self, axes: tuple[int, ...] | None = None) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.axes = axes

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = torch.fft.fftshift(torch.fft.fft2(self.first(x)))
        again = torch.fft.fftshift(torch.fft.fft2(self.first(x * x))) * 2.0
        parts = torch.fft.fftshift(found.real, dim=(-2, -1)) + torch.fft.ifftshift(again.imag, self.axes)
        return torch.fft.ifft2(torch.fft.ifftshift(found)).real + parts + torch.fft.ifftshift(parts)


def shifted():
    return Shifted(), (torch.randn(3, 5, 6),)


class PythonNumbers(nn.Module):
    """Complex numbers of Python's next to tensors, real ones and complex ones."""

    def __init__(self, way: str = "") -> None:
        super().__init__()
        self.mix = nn.Linear(6, 6)
        self.way = way

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.mix(x)
        if self.way == "left":
            z = torch.polar(x.exp(), x) * 2j
            return (1j / (z + 1)).imag + (1 - 2j + z).abs()
        z = x + 1j * x.flip(1)
        z = z * torch.exp(-1j * x) / (2 + 1j)
        return (z - 0.5j).abs() + z.real


def python_numbers():
    return PythonNumbers(), (torch.randn(3, 6),)


def python_numbers_left():
    return PythonNumbers("left"), (torch.randn(3, 6),)


def stft(x: torch.Tensor, size: int, step: int, window: torch.Tensor) -> torch.Tensor:
    """A function with the name of one of torch's, as vocoders have it."""
    found = torch.stft(x, size, step, window.shape[0], window, return_complex=True)
    return torch.sqrt(torch.clamp(found.real**2 + found.imag**2, min=1e-7)).transpose(2, 1)


class SpectralLoss(nn.Module):
    """The loss of a vocoder: magnitudes of short transforms with a window that has a name."""

    def __init__(self, size: int = 16, step: int = 5, width: int = 12, window: str = "hann_window") -> None:
        super().__init__()
        self.size, self.step = size, step
        self.pre = nn.Conv1d(1, 1, 3, padding=1)
        self.register_buffer("window", getattr(torch, window)(width))

    def forward(self, x: torch.Tensor, y: torch.Tensor):
        one = stft(self.pre(x).squeeze(1), self.size, self.step, self.window)
        two = stft(y.squeeze(1), self.size, self.step, self.window)
        return torch.norm(two - one, p="fro") / torch.norm(two, p="fro"), (one.log() - two.log()).square().mean()


def spectral_loss():
    torch.manual_seed(0)
    return SpectralLoss(), (torch.randn(2, 1, 50), torch.randn(2, 1, 50))


class Masked(nn.Module):
    """Short transforms, masked in their parts or their sizes, and back to a signal; or their phase and their size."""

    def __init__(self, size: int = 16, parts: bool = True, normalized: bool = True, center: bool = True) -> None:
        super().__init__()
        self.size, self.parts, self.center = size, parts, center
        self.how = {"normalized": normalized, "center": center}
        self.mask = nn.Conv2d(2 if parts else 1, 2 if parts else 1, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        window = torch.hamming_window(self.size).to(x)
        z = torch.stft(x, self.size, self.size // 4, window=window, return_complex=True, **self.how)
        if self.parts:
            m = self.mask(torch.view_as_real(z).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
            z = torch.view_as_complex(m.contiguous())
        else:
            z = torch.sigmoid(self.mask(z.abs()[:, None]))[:, 0] * torch.exp(z.angle() * 1j)
        length = x.shape[-1] if self.center else None
        return torch.istft(z, self.size, self.size // 4, window=window, length=length, **self.how)


def masked_spectrum():
    torch.manual_seed(0)
    return Masked(), (torch.randn(2, 50),)


def masked_sizes():
    torch.manual_seed(0)
    return Masked(size=8, parts=False, normalized=False, center=False), (torch.randn(2, 50),)


class Measured(nn.Module):
    """Means, deviations and norms of spectra, one way or another."""

    def __init__(self, way: str = "", norm: str | None = "ortho") -> None:
        super().__init__()
        self.mix = nn.Linear(6, 6)
        self.way, self.norm = way, norm

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.mix(x)
        if self.way == "means":
            f = torch.fft.fft2(x, norm=self.norm)
            f = f.mul(f.mean(-1, keepdim=True)) / f.abs().mean()
            f = f - torch.mean(f) * torch.mean(f, dim=(0, 1), keepdim=True)
            x = torch.fft.ifft2(f, norm=self.norm).real + f.mean().imag
        elif self.way == "deviations":
            f = torch.fft.rfft(x, dim=1, norm=self.norm)
            x = x + f.std(-1).mean() + torch.var(f, dim=1, keepdim=True).mean() + f.var() + torch.std(f)
        elif self.way == "norms":
            f = torch.fft.rfft2(x, norm=self.norm)
            x = x / f.norm() + torch.norm(f, dim=-1, keepdim=True).mean() + f.norm(p=1, dim=1).mean()
            x = x + torch.linalg.vector_norm(f, ord=3, dim=(0, 1)).sum() + torch.linalg.norm(f)
            x = x + torch.fft.irfft2(f, s=x.shape[-2:], norm=self.norm)
        elif self.way == "inverses":
            f = torch.fft.fftn(x, dim=(-2, -1), norm=self.norm)
            x = torch.fft.irfftn(torch.fft.rfftn(x, norm=self.norm), s=x.shape, norm=self.norm)
            x = x + torch.fft.ifftn(f, dim=(-2, -1), norm=self.norm).real
        return x


def measured_spectra():
    return Measured(), (torch.randn(3, 8, 6),)


def measured_spectra_means():
    return Measured("means"), (torch.randn(3, 8, 6),)


def measured_spectra_means_forward():
    return Measured("means", "forward"), (torch.randn(3, 8, 6),)


def measured_spectra_deviations():
    return Measured("deviations", None), (torch.randn(3, 8, 6),)


def measured_spectra_norms():
    return Measured("norms", "backward"), (torch.randn(3, 8, 6),)


def measured_spectra_inverses():
    return Measured("inverses"), (torch.randn(3, 8, 6),)
