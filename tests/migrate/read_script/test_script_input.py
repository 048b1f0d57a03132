"""What is no training script: one line that says so, and never a traceback."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msmigrate.errors import BadInput
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.migrate.recipe_draft.draft import draft_recipe

Write = Callable[..., Path]
REPRODUCIBLE = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"import torch\ndef f(:\n", "train.py:2: not Python: "),
        (b"import torch\n  x = 1\n", "train.py:2: not Python: unexpected indent"),
        (b"\x80\x02}q\x00.", "not Python: it holds zero bytes"),
        (b"\xff\xfe\xfa", "not Python: "),
        (b"# coding: klingon\nimport torch\n", "not Python: "),
        (b"# coding: utf-8\nx = '\xff'\n", "not Python: "),
        (b"import numpy\n", "imports none of torch, torchvision, timm, apex"),
        (b"", "imports none of torch"),
        (
            b"import tensorflow as tf\nimport sklearn.svm\n",
            "it imports tensorflow and sklearn, without torch; give the",
        ),
        (b"from transformers import TFAutoModel, AutoTokenizer, FlaxBertModel\n", "imports none of torch"),
        (b"import jax\nfrom transformers import DataCollatorForSeq2Seq, pipeline\n", "it imports jax, without torch"),
        (b"import transformers\nprint(transformers.__version__)\n", "imports none of torch"),
        (b"from mindspore import nn\n", "msmigrate mappings NAME says what a name is in torch"),
        (b"import torch\nx = " + b"(" * 500 + b")" * 500, "not Python: too many nested parentheses"),
        (b"import torch\nx = " + b"-" * 5000 + b"1", "nested"),
        (b"import torch\nx = 1" + b" + 1" * 50_000, "nested"),
        (b"import torch\nx" + b".a" * 3000, "nested"),
        (b"import torch\n" + b"x = 1\n" * 500_000, "is larger than 2 MiB"),
        (b"import torch\nx = " + b"9" * 5000, "not Python: "),
    ],
)
def test_what_cannot_be_read_is_one_line(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        analyze_script(path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    for path, said in (
        (tmp_path / "gone.py", "there is no such file"),
        (tmp_path, "is not a file"),
        (Path("a\0b.py"), "cannot be read|no such file"),
        (Path(f"{'a' * 5000}.py"), "cannot be read"),
    ):
        with pytest.raises(BadInput, match=said):
            analyze_script(path)


def test_a_mode_that_there_is_not_is_refused(scripts: dict[str, Path]) -> None:
    with pytest.raises(BadInput, match="mode is one of"):
        analyze_script(scripts["mnist"], mode="eager")


def test_odd_text_is_read(write: Write) -> None:
    for text in (
        "\N{BOM}import torch\ntorch.nn.ReLU6()\n",
        "import torch\r\ntorch.nn.ReLU6()\r\n",
        "import torch\x0c\ntorch.nn.ReLU6()\n",
        "import torch\nx = '\u2028\x1b[31m'\ntorch.nn.ReLU6()",
        "import torch\nx = '\\ud800'\ntorch.nn.ReLU6(x)\n",
        "import torch\nmatch x:\n    case {'a': torch.nn.ReLU}:\n        torch.nn.ReLU6()\n",
        "import torch\nasync def f():\n    async with a as b:\n        async for c in d:\n            torch.nn.ReLU6()",
        "import torch\ndef f(a, /, b=1, *c, d=2, **e) -> torch.Tensor:\n    torch.nn.ReLU6()\nf(1, *x, **y)\n",
    ):
        path = write("")
        path.write_bytes(text.encode("utf-8"))
        assert any(use.torch == "torch.nn.ReLU6" for use in analyze_script(path).uses), text


def _survives(path: Path) -> None:
    try:
        analysis = analyze_script(path)
    except BadInput as error:
        assert "\n" not in str(error)
    else:
        draft_recipe(analysis)


@REPRODUCIBLE
@given(content=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes_end_in_an_analysis_or_in_one_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(b"import torch\n" + content)
    _survives(path)


@REPRODUCIBLE
@given(seed=st.integers(0, 2**32))
def test_damaged_scripts_end_in_an_analysis_or_in_one_line(seed: int, scripts: dict[str, Path], tmp_path: Path) -> None:
    draw = random.Random(seed)
    lines = draw.choice(sorted(scripts.values())).read_text(encoding="utf-8").split("\n")
    for _ in range(draw.randint(1, 5)):
        if draw.random() < 0.7:
            lines.pop(draw.randrange(len(lines)))
        else:
            other = draw.randrange(len(lines))
            words = lines[other].split(" ")
            draw.shuffle(words)
            lines[other] = " ".join(words)
    path = tmp_path / "train.py"
    path.write_text("\n".join(lines), encoding="utf-8")
    _survives(path)
