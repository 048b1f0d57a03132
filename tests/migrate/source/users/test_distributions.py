"""torch.distributions in a forward: pairs of tensors and functions of these."""

from __future__ import annotations

from written import Written

Users = dict[str, Written]


def test_a_policy_with_its_density_and_the_branch_that_draws(users: Users) -> None:
    found = users["gaussian"]
    found.agrees()
    found.holds("return normal_distribution(self.mean(h), ops.exp(", "normal_log_prob(dist, x)", "dist[1] ** 2")
    found.holds("x = normal_rsample(dist) if self.noisy else dist[0] + dist[1] * noise")
    found.holds("return dist[0] if greedy else normal_sample(dist, sample_shape=(2,))")
    assert not found.source.problems and not found.source.not_run


def test_a_normals_divergence_and_a_prior_made_of_numbers(users: Users) -> None:
    found = users["encoder"]
    found.agrees()
    found.holds("self.prior = normal_distribution(0.0, 1.0)", "normal_kl_divergence(posterior, self.prior)")


def test_distributions_of_whole_numbers_and_switches(users: Users) -> None:
    found = users["discrete"]
    found.agrees()
    found.holds("categorical_distribution(logits=scores)", "bernoulli_distribution(probs=ops.sigmoid(-scores))")
    found.holds("categorical_kl_divergence(dist, same)", "bernoulli_kl_divergence(on, off)")


def test_a_distribution_that_the_net_returns_is_its_two_tensors(users: Users) -> None:
    found = users["returned"]
    found.agrees()
    assert len([key for key in found.torch if key.startswith("eval")]) >= 5


def test_what_a_pair_of_tensors_does_not_have_is_refused_at_its_place(users: Users) -> None:
    left = {problem.text for problem in users["uncovered"].source.problems}
    assert "torch.distributions.Normal.icdf has no row in the mapping table" in left
    assert "torch.distributions.Normal.expand has no row in the mapping table" in left  # not that of a tensor
    assert any("event_shape is not written" in text for text in left)
