"""The worker that checks torch and torchvision: do they import, fit together, and exchange arrays with NumPy?

    python -m msmigrate.migrate.torch_probe_worker

Prints one line of JSON: torch and torchvision, their versions (torchvision's null where it does not work, with the
reason in `problem`), and numpy, why no array can be made (empty where one can).
"""

from __future__ import annotations

from typing import Any

from .model_spec import serve


def probe() -> dict[str, Any]:
    """Import both and use each once."""
    import torch

    answer: dict[str, Any] = {"torch": str(torch.__version__), "torchvision": None, "problem": "", "numpy": ""}
    try:
        torch.zeros(1).numpy()
    except RuntimeError as error:  # "Numpy is not available"
        answer["numpy"] = _line(error)
    try:
        import torchvision

        torchvision.ops.nms(torch.tensor([[0.0, 0.0, 1.0, 1.0]]), torch.ones(1), 0.5)  # compiled code
        answer["torchvision"] = str(torchvision.__version__)
    except Exception as error:  # an operator is missing, a library does not load, or an import fails
        answer["problem"] = _line(error)
    return answer


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


if __name__ == "__main__":
    serve(probe)
