"""Models that compute with complex tensors, written and run in both frameworks."""

from __future__ import annotations

import pytest
from test_handed_on import classes
from written import Written

Users = dict[str, Written]


@pytest.mark.full
def test_a_spectrum_is_real_again(users: Users) -> None:
    found = users["spectrum"]
    found.agrees()
    found.holds("tensor_abs(spectrum)", "ops.real(spectrum) * ops.imag(spectrum)", "ops.rfft(self.first(x), dim=1)")


def test_products_and_quotients(users: Users) -> None:
    found = users["filtered"]
    found.agrees()
    found.holds("mul(found, view_as_complex(self.weight)) * 2.0")


@pytest.mark.full
def test_a_product_of_complex_matrices_among_zeros(users: Users) -> None:
    found = users["modes"]
    found.agrees()
    found.holds("dtype=mindspore.complex64")


def test_what_has_no_gradient_of_complex_tensors_is_refused(users: Users) -> None:
    left = " ".join(problem.text for problem in users["powers"].source.problems)
    assert "torch.prod of a complex tensor" in left and "** 2 of a complex tensor" in left


@pytest.mark.full
def test_a_cosine_transform_by_a_matrix_that_a_fourier_transform_gives(users: Users) -> None:
    found = users["cosine"]
    found.agrees()
    found.holds("* 3.141592653589793", "ops.fft(")


def test_a_spectrum_that_is_shifted_along_all_axes(users: Users) -> None:
    found = users["shifted"]
    found.agrees()
    found.holds("found = fftshift(ops.fft2(", "ops.fftshift(ops.real(found), dim=(-2, -1))")
    found.holds("ifftshift(ops.imag(again), dim=self.axes)")


def test_means_deviations_and_norms_of_spectra(users: Users) -> None:
    """As they ran, and where they did not: what a Fourier transform gives is complex there, too."""
    unrun = users["measured_spectra"]
    unrun.agrees()
    assert not unrun.source.not_run
    ways = (
        "measured_spectra_means",
        "measured_spectra_means_forward",
        "measured_spectra_deviations",
        "measured_spectra_norms",
        "measured_spectra_inverses",
    )
    for found in (users[name] for name in ways):
        found.agrees()
        assert classes(found)["Measured"] == classes(unrun)["Measured"]
    unrun.holds("complex_mean(f, -1, True)", "complex_std(f, dim=-1)", "tensor_norm(tensor_abs(f), p=1, dim=1)")


def test_complex_numbers_of_python_s_become_tensors(users: Users) -> None:
    """Also where they did not run."""
    for name in ("python_numbers", "python_numbers_left"):
        found = users[name]
        found.agrees()
        assert not found.source.not_run
        found.holds("mul(tensor_complex(Tensor(0.0), Tensor(1.0)), ops.flip(x, (1,)))")
        found.holds("div(tensor_complex(Tensor(0.0), Tensor(1.0)), z + 1)")


def test_short_transforms_with_a_window_by_its_name(users: Users) -> None:
    """In a function that is called as torch's, so that msmigrate's is called otherwise."""
    found = users["spectral_loss"]
    found.agrees()
    found.holds("def stft(x: Tensor, size: int, step: int, window: Tensor)", "tensor_stft(x, size, hop_length=step")


@pytest.mark.parametrize("name", ["masked_spectrum", "masked_sizes"])
def test_short_transforms_and_back(users: Users, name: str) -> None:
    found = users[name]
    found.agrees()
    found.holds("istft(z, self.size, hop_length=self.size // 4", "hamming_window(self.size)")
    assert not found.source.not_run
