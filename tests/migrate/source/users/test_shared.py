"""Tensors whose memory something else has too: what did not run and writes into one raises, where that is read."""

from __future__ import annotations

from written import Written

Users = dict[str, Written]


def test_what_else_a_tensor_is_in_is_found_where_it_is_changed(users: Users) -> None:
    """It stayed as it was there, in silence: in lists, attributes, views, what helpers give, what layers change."""
    found = users["shares"]
    found.agrees()
    assert [one.text for one in found.source.not_run] == [
        "y -= 1 may change `both[0]` too, which is read afterwards",
        "rows[0][0] += 2 may change `y` too, which is read afterwards",
        "each.sub_(1) may change `y` too, which is read afterwards",
        "part += 1 may change `y` too, which is read afterwards",
        "total = self.doubled(y) may change `y` too, which is read afterwards",
        "y += 1 may change `parts[…]` too, which is read afterwards",
        "y.add_(1) may change `self.kept` too, which is read afterwards",
        "seen += 1 may change `self.seen` too, which is read afterwards",
        "z = self.act(y) may change `y` too, which is read afterwards",
        "z = self.twice(y) may change `y` too, which is read afterwards",
        "y += 1 may change `held[…]` too, which is read afterwards",
        "z += 1 may change `y` too, which is read afterwards",
        "z += 1 may change `y` too, which is read afterwards",
        "y += 1 may change `found[…]` too, which is read afterwards",
        "y[:, 1:] = y[:, :-1] changes `y[:, 1:]`, which it reads",
        "found[0] += 1 may change `found[…]` too, which is read afterwards",
    ]


def test_what_nothing_else_has_or_reads_is_written(users: Users) -> None:
    for name in ("keeps", "keeps_helper"):
        users[name].agrees()
        assert not users[name].source.not_run
    users["keeps"].holds("both[0] += 1", "one = other", "z = z + y")


def test_a_branch_that_writes_into_what_a_caller_reads_afterwards(users: Users) -> None:
    """The caller ran, the branch did not; where the caller does not read it, the branch is written."""
    for name in ("works", "works_alone"):
        users[name].agrees()
    (refused,) = users["works"].source.not_run
    assert refused.text == "t += 1 may change `y` too, which is read afterwards"
    (unread,) = users["works_alone"].source.not_run  # the caller's other branch, which reads y
    assert unread.text == "return y + self.worked(y) changes `y`, which it reads"
    users["works_alone"].holds("t = t + 1")
