"""einops' patterns as reshape and transpose: what is written, run on arrays with einops' own words for the answer."""

from __future__ import annotations

import ast
import random

import einops
import numpy as np
import pytest
from msmigrate.migrate.source.rewrite.context import Unwritable
from msmigrate.migrate.source.rewrite.einops_patterns import Pattern, _sides, _written, plain_einsum

IMAGE = np.arange(2 * 3 * 4 * 6, dtype=np.float32).reshape(2, 3, 4, 6)


class Ops:
    transpose = staticmethod(np.transpose)
    broadcast_to = staticmethod(np.broadcast_to)
    matmul, expand_dims = staticmethod(np.matmul), staticmethod(np.expand_dims)
    mean, sum, amax, amin = (staticmethod(getattr(np, name)) for name in ("mean", "sum", "amax", "amin"))


class Named:
    """The only thing that is asked of the function in which a pattern stands: MindSpore's names."""

    def name(self, qualified: str) -> ast.expr:
        return ast.parse(qualified.removeprefix("mindspore."), mode="eval").body


def computed(what: str, text: str, x: np.ndarray, reduction: str = "", known: bool = True, **sizes: int) -> np.ndarray:
    """known: whether it is known how many axes x has."""
    pattern = Pattern(text, *_sides(text, x.ndim if known else None), what, reduction, [*sizes])
    place = {"ops": Ops}
    exec(_written(pattern, Named()), place)
    return place[pattern.name](x, **sizes)


def test_patches() -> None:
    found = computed("rearrange", "b c (h p) (w q) -> b (h w) (p q c)", IMAGE, p=2, q=3)
    whole = IMAGE.reshape(2, 3, 2, 2, 2, 3).transpose(0, 2, 4, 3, 5, 1).reshape(2, 4, 18)
    np.testing.assert_array_equal(found, whole)


@pytest.mark.parametrize(
    ("what", "text", "sizes", "shape"),
    [
        ("rearrange", "b c h w -> b (c h w)", {}, (2, 72)),
        ("rearrange", "b c ... -> b ... c", {}, (2, 4, 6, 3)),
        ("rearrange", "b c h w -> 1 b c h () w", {}, (1, 2, 3, 4, 1, 6)),
        ("rearrange", "x y h w -> (x y) h w", {}, (6, 4, 6)),  # the tensor has another name then
        ("repeat", "b c h w -> b c (h r) w n", {"r": 2, "n": 3}, (2, 3, 8, 6, 3)),
    ],
)
def test_shapes(what: str, text: str, sizes: dict[str, int], shape: tuple[int, ...]) -> None:
    assert computed(what, text, IMAGE, **sizes).shape == shape


@pytest.mark.parametrize(
    ("what", "text", "sizes"),
    [
        ("rearrange", "... () () -> ...", {}),
        ("rearrange", "b ... -> b (...)", {}),
        ("rearrange", "b d ... -> d ... b", {}),
        ("rearrange", "(b s) ... d -> b ... s d", {"s": 2}),
        ("rearrange", "b ... f d -> (b f) ... d ()", {}),
        ("repeat", "b ... d -> (b s) ... d n", {"s": 3, "n": 2}),
        ("repeat", "... -> n ...", {"n": 2}),
        ("reduce", "(b s) ... -> b ...", {"s": 2}),
        ("reduce", "b ... d -> d b", {}),
        ("reduce", "b ... h d -> d ... b", {}),
        ("reduce", "... -> ", {}),
    ],
)
def test_any_number_of_axes(what: str, text: str, sizes: dict[str, int]) -> None:
    for shape in ((2, 3), (4, 3, 5), (2, 4, 5, 3), (6, 2, 1, 3, 2)):
        x = np.random.default_rng(0).normal(size=(*shape, 1, 1) if "()" in text[:9] else shape)
        if len(shape) == 2 and text.count(" h ") + text.count(" f ") and what != "repeat":
            continue
        by = ("sum",) if what == "reduce" else ()
        whole = getattr(einops, what)(x, text, *by, **sizes)
        for known in (True, False):
            found = computed(what, text, x, *by, known=known, **sizes)
            assert found.shape == whole.shape, (text, shape, known)
            np.testing.assert_allclose(found, whole)


@pytest.mark.parametrize("text", ["(b ...) c -> b c ...", "... ... -> ...", "rest ... -> ... rest", "a ... -> a"])
def test_what_is_unclear_of_any_number_of_axes_is_refused(text: str) -> None:
    with pytest.raises(Unwritable, match="einops"):
        computed("rearrange", text, IMAGE, known=False)


def test_values_are_repeated_beside_each_other() -> None:
    np.testing.assert_array_equal(computed("repeat", "n -> (n r)", np.arange(3), r=2), [0, 0, 1, 1, 2, 2])


@pytest.mark.parametrize(("word", "function"), [("mean", np.mean), ("sum", np.sum), ("max", np.max), ("min", np.min)])
def test_reductions(word: str, function: type) -> None:
    found = computed("reduce", "b c (h p) w -> b h c", IMAGE, word, p=2)
    whole = function(IMAGE.reshape(2, 3, 2, 2, 6), axis=(3, 4)).transpose(0, 2, 1)
    np.testing.assert_allclose(found, whole)


@pytest.mark.parametrize(
    ("what", "text", "reduction"),
    [
        ("rearrange", "b c h w -> b c h", ""),  # an axis is lost
        ("rearrange", "b c (h p) w -> b c h p w", ""),  # of which size?
        ("reduce", "b c h w -> b c", "prod"),
        ("rearrange", "b c h [w] -> b c h w", ""),
        ("rearrange", "b c h w", ""),
    ],
)
def test_what_cannot_be_written_says_so(what: str, text: str, reduction: str) -> None:
    with pytest.raises(Unwritable, match="einops"):
        computed(what, text, IMAGE, reduction)


@pytest.mark.parametrize(
    ("equation", "text"),
    [
        ("bhid,bhjd->bhij", "ops.matmul(x, ops.transpose(y, (0, 1, 3, 2)))"),
        ("blhd,bshd->bhls", "ops.matmul(ops.transpose(x, (0, 2, 1, 3)), ops.transpose(y, (0, 2, 3, 1)))"),
        ("nctv,vw->nctw", "ops.matmul(x, y)"),
        ("vw,nctv->nctw", "ops.matmul(y, x)"),
        ("bij->bji", "ops.transpose(x, (0, 2, 1))"),
        ("bij->b", "ops.sum(x, (1, 2))"),
        ("bij,bij->b", "ops.sum(x * y, (1, 2))"),
        ("bi,bj->bij", "ops.expand_dims(x, 2) * ops.expand_dims(y, 1)"),
        ("bij,bj->bi", "ops.sum(x * ops.expand_dims(y, 1), 2)"),
        ("nkctv,kvw->nctw", None),  # two letters to sum
        ("bhid,bjd->bhij", None),  # several rows for each batch
        ("ii->i", None),
        ("ij,jk->ii", None),
        ("ij,jk->ikx", None),
    ],
)
def test_an_equation_as_a_product(equation: str, text: str | None) -> None:
    left, _, out = equation.partition("->")
    found = plain_einsum(left.split(","), out)
    assert (found and found.replace("mindspore.", "")) == text


@pytest.mark.parametrize("ones", [False, True])
def test_products_are_those_of_einsum(ones: bool) -> None:
    """Random equations; ones: also axes of size 1 that meet longer ones, but no summed one."""
    drawn, generator, written = random.Random(0), np.random.default_rng(0), 0
    for _ in range(400):
        terms = ["".join(drawn.sample("abcde", drawn.randint(1, 4))) for _ in range(drawn.randint(1, 2))]
        letters = sorted({*"".join(terms)})
        out = "".join(drawn.sample(letters, drawn.randint(0, len(letters))))
        template = plain_einsum(terms, out)
        if template is None:
            continue
        written += 1
        sizes = {letter: 2 + number for number, letter in enumerate(letters)}
        alone = drawn.randrange(len(terms)) if ones else -1
        given = [
            generator.random([1 if number == alone and letter in out else sizes[letter] for letter in term])
            for number, term in enumerate(terms)
        ]
        found = eval(template.replace("mindspore.", ""), {"ops": Ops, **dict(zip("xy", given, strict=False))})
        np.testing.assert_allclose(found, np.einsum(f"{','.join(terms)}->{out}", *given), rtol=1e-12, err_msg=template)
    assert written > 250
