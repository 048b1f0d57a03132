"""Whether drawn cases agree: torch's float32 (or float16) against its float64 is the noise, as in mapping_judge.py.

The noise of a tensor of few elements is a matter of luck: where a case does not agree, its values are drawn more often,
and each tensor of all drawings together is judged as one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from case_client import Server, Stopped
from mapping_cases import Results, phases
from mapping_judge import complaint, other_dtype
from mapping_judge import judge as judge_listed
from msmigrate.mappings.rows import Case, Row
from varied_cases import name_of

DRAWINGS = 8  # of a case that does not agree in the first
FAR = 0.01
TENSORS = ("layer", "module", "loss", "function")  # the kinds that are judged here, tensor by tensor


class Engine:
    """Both frameworks' workers, and the verdict on single cases."""

    def __init__(self, torch: Server, mindspore: Server) -> None:
        self.torch, self.mindspore = torch, mindspore

    def complaints(self, row: Row, case: Case, mode: str) -> list[str]:
        """What speaks against a case in one mode; empty where it agrees."""
        try:
            found = [self.run(name_of(row, case, 0), row, case, (mode,))]
            if row.kind not in TENSORS:
                return judge_listed(name_of(row, case, 0), row, case, mode, found[0])[1]
            wrong = judge(row, case, mode, found)
            if not wrong or any(part.errors for part in found[0].values()) or beyond_noise(row, case, mode, found[0]):
                return wrong
            found += [self.run(name_of(row, case, one), row, case, (mode,)) for one in range(1, DRAWINGS)]
            return judge(row, case, mode, found)
        except Stopped as stopped:
            return [str(stopped)]

    def close(self) -> None:
        """End both workers."""
        self.torch.close()
        self.mindspore.close()

    def run(
        self, name: str, row: Row, case: Case, modes: tuple[str, ...], *, fresh: bool = False
    ) -> dict[str, Results]:
        """One case in both frameworks, at the same time; its values are drawn from the name. Raises Stopped."""
        servers = {"torch": self.torch, "mindspore": self.mindspore}
        try:
            for server in servers.values():
                server.ask(name, row, case, modes, fresh=fresh)
            return {framework: server.answer() for framework, server in servers.items()}
        except Stopped:
            self.close()  # the other one's answer is of a case that is over
            raise


class Verdicts:
    """An engine's verdicts on the cases of one row in one mode, each case judged once.

    After `failures` failing cases nothing new is tried: a failure may cost a new process, and hypothesis shrinks long.
    """

    def __init__(self, engine: Engine, row: Row, mode: str, failures: int = 12) -> None:
        self.engine, self.row, self.mode, self.failures = engine, row, mode, failures
        self.known: dict[str, list[str]] = {}

    def complaints(self, case: Case) -> list[str]:
        """What speaks against a case; nothing where no more is tried."""
        name = name_of(self.row, case, 0)
        if name not in self.known:
            if sum(map(bool, self.known.values())) >= self.failures:
                return []
            self.known[name] = self.engine.complaints(self.row, case, self.mode)
        return self.known[name]


def judge(row: Row, case: Case, mode: str, found: Sequence[dict[str, Results]]) -> list[str]:
    """What speaks against a case, from all its drawings."""
    for results in found:
        for framework, part in results.items():
            if part.errors:
                key, text = next(iter(part.errors.items()))
                blame = "; mend the row's `vary`" if framework == "torch" else ""
                return [f"{framework} {key}{blame}: {text}"]
    wrong = []
    for phase in phases(row, mode):
        drawings = []
        for index, results in enumerate(found):
            key = f"{name_of(row, case, index)}/{phase}"
            ours, reference = (results["torch"].of(f"{key}/{label}") for label in ("float32", "float64"))
            drawings.append((ours, reference, results["mindspore"].of(f"{key}/{mode}")))
        wrong += [f"{phase} {mode}: {text}" for text in differing(row, case, drawings)]
    return wrong


Drawing = tuple[dict[str, np.ndarray], dict[str, np.ndarray], dict[str, np.ndarray]]


def differing(row: Row, case: Case, drawings: Sequence[Drawing]) -> list[str]:
    """The tensors that differ; a missing or an additional one does."""
    ours, _, theirs = drawings[0]
    if not ours or set(ours) != set(theirs):
        return [f"torch has {sorted(ours)}, MindSpore {sorted(theirs)}"]
    found = []
    for tensor in ours:
        other = other_dtype(row, case, ours[tensor], theirs[tensor])
        shapes = [(part[0][tensor].shape, part[2][tensor].shape) for part in drawings]
        if shapes[0][0] != shapes[0][1]:
            other = f"shape {shapes[0][1]}, torch has {shapes[0][0]}"
        whole = [np.concatenate([drawing[side][tensor].ravel() for drawing in drawings]) for side in range(3)]
        trouble = other or (None if near(case, whole) else complaint(whole[0], whole[1], whole[2]))
        if trouble:
            found.append(f"{tensor}: {trouble}")
    return found


def beyond_noise(row: Row, case: Case, mode: str, found: dict[str, Results]) -> bool:
    """Whether a tensor of one drawing is so far off that no other drawing's noise could explain it: a hundredth."""
    for phase in phases(row, mode):
        key = f"{name_of(row, case, 0)}/{phase}"
        reference, theirs = found["torch"].of(f"{key}/float64"), found["mindspore"].of(f"{key}/{mode}")
        for tensor, exact in reference.items():
            other = theirs.get(tensor)
            if other is None or other.shape != exact.shape:
                return True
            if not np.allclose(other, exact, rtol=0, atol=FAR * float(np.abs(exact).max(initial=0)), equal_nan=True):
                return True
    return False


def near(case: Case, whole: Sequence[np.ndarray]) -> bool:
    """Whether a tensor (torch, torch in float64, MindSpore) is as near as the row's variation asks, if it does."""
    if case.apart is None or whole[2].dtype.kind != "f":
        return False
    return bool(np.abs(whole[2] - whole[1]).max(initial=0) <= case.apart * np.abs(whole[1]).max(initial=0))
