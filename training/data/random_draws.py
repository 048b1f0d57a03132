"""The draws of random transforms and mixup, the same in both frameworks: a generator for each image; and torch's order
of an epoch.

Every image has a generator of its own, made from (seed, epoch, index of the image in its source), and the random
transforms of a pipeline draw from it in their order. So an image is augmented alike in either framework, by any
worker, and after a resumed run, and no generator's state is ever stored. Which parameters are drawn, and from which
distributions, is torchvision's own `get_params` of each transform.

Mixing follows timm.data.Mixup in batch mode, drawn in its order and computed in its arithmetic, so the same draws give
the same bits. One thing is extended here: timm refuses a batch with an odd number of images, and here its middle image
is mixed with itself, since the last batch of an epoch may be odd.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from ...errors import BadInput, BadRecipe, Unsupported
from ..recipe.part_arguments import (
    AFTER_TO_TENSOR,
    DRAWABLE,
    arguments,
    can_draw,
    is_random,
    jitter_range,
    refuse_random,
    short,
    wrong_side,
)
from ..recipe.schema import Mixup, Part

Key = tuple[int, int, int]  # seed, epoch, index of the image in its source
Size = tuple[int, int]  # width, height
Drawn = dict[str, Any]

TRIES = 10  # torchvision's, for a crop or a patch that fits


def generator(key: Key) -> np.random.Generator:
    """The generator of one image: Philox with (seed, epoch) as its key, and the index in the counter.

    Two images never share a number: the counter's lower half counts draws, its third word is the index, and its last
    word is 0, which sets images apart from batches (`batch_generator`).
    """
    seed, epoch, index = (int(number) for number in key)
    return np.random.Generator(np.random.Philox(key=[seed, epoch], counter=[0, 0, index, 0]))


def batch_generator(seed: int, epoch: int, step: int, rank: int = 0) -> np.random.Generator:
    """The generator for draws that are made once for a whole batch: step `step` of the epoch, in process `rank`."""
    return np.random.Generator(np.random.Philox(key=[seed, epoch], counter=[0, 0, step, 1 + rank]))


def draw(part: Part, generator: np.random.Generator, size: Size, channels: int = 3) -> Drawn:
    """Draw what one random transform needs for one image of (width, height) `size`, which advances the generator.

    Returns plain numbers, by transform:

    RandomResizedCrop          top, left, height, width: the box, in pixels
    RandomCrop                 pads: the paddings to lay on one after the other, each (left, top, right, bottom); and
                               top, left, height, width of the box in the padded image
    RandomHorizontalFlip, RandomVerticalFlip    flip: whether
    ColorJitter                order: of 0 brightness, 1 contrast, 2 saturation, 3 hue; factors: of each, or None
    RandAugment                ops: pairs of a name and a signed magnitude
    RandomErasing              box: top, left, height, width, or None; noise: float32 (channels, height, width) for
                               the value 'random', else None

    Raises Unsupported for a transform it does not know, BadRecipe for a crop that does not fit.
    """
    if not can_draw(part):
        raise Unsupported(f"{part.name} cannot be drawn for both frameworks; those that can: {', '.join(DRAWABLE)}")
    return _DRAWS[short(part)](arguments(part), generator, size, channels)


def pair(size: Any) -> tuple[int, int]:
    """torchvision's `size`: one number for both, or (height, width)."""
    numbers = (size,) if isinstance(size, (int, float)) else tuple(size)
    return int(numbers[0]), int(numbers[-1])


def _below(generator: np.random.Generator, end: int) -> int:
    return int(generator.integers(0, end))


def _area_and_ratio(args: Mapping[str, Any], generator: np.random.Generator, size: Size) -> tuple[float, float]:
    """An area, uniform in share, and an aspect ratio, uniform in its logarithm."""
    width, height = size
    area = width * height * float(generator.uniform(*args["scale"]))
    low, high = (math.log(bound) for bound in args["ratio"])
    return area, math.exp(float(generator.uniform(low, high)))


def _resized_crop(args: Mapping[str, Any], generator: np.random.Generator, size: Size, channels: int) -> Drawn:
    width, height = size
    for _ in range(TRIES):
        area, ratio = _area_and_ratio(args, generator, size)
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            top, left = _below(generator, height - h + 1), _below(generator, width - w + 1)
            return {"top": top, "left": left, "height": h, "width": w}
    w, h = width, height  # no try fits: as much of the centre as the ratio allows
    if width / height < min(args["ratio"]):
        h = round(w / min(args["ratio"]))
    elif width / height > max(args["ratio"]):
        w = round(h * max(args["ratio"]))
    return {"top": (height - h) // 2, "left": (width - w) // 2, "height": h, "width": w}


def _crop(args: Mapping[str, Any], generator: np.random.Generator, size: Size, channels: int) -> Drawn:
    (width, height), (h, w) = size, pair(args["size"])
    pads = []
    if args["padding"] is not None:
        pads.append(four(args["padding"]))
        left, top, right, bottom = pads[0]
        width, height = width + left + right, height + top + bottom
    if args["pad_if_needed"] and width < w:
        pads.append((w - width, 0, w - width, 0))
        width += 2 * (w - width)
    if args["pad_if_needed"] and height < h:
        pads.append((0, h - height, 0, h - height))
        height += 2 * (h - height)
    if height < h or width < w:
        raise BadRecipe(
            f"RandomCrop: a crop {h} high and {w} wide does not fit an image {height} high and {width} wide: "
            "put Resize before it, or set padding or pad_if_needed"
        )
    if (width, height) == (w, h):
        return {"pads": pads, "top": 0, "left": 0, "height": h, "width": w}
    top, left = _below(generator, height - h + 1), _below(generator, width - w + 1)
    return {"pads": pads, "top": top, "left": left, "height": h, "width": w}


def four(padding: Any) -> tuple[int, int, int, int]:
    """torchvision's `padding` as (left, top, right, bottom): one number, (left and right, top and bottom), or all."""
    numbers = (padding,) if isinstance(padding, int) else tuple(padding)
    if len(numbers) not in (1, 2, 4):
        raise BadRecipe(f"RandomCrop: padding takes 1, 2 or 4 numbers, not {len(numbers)}")
    numbers = numbers * (4 // len(numbers))
    return int(numbers[0]), int(numbers[1]), int(numbers[2]), int(numbers[3])


def _flip(args: Mapping[str, Any], generator: np.random.Generator, size: Size, channels: int) -> Drawn:
    return {"flip": bool(generator.random() < args["p"])}


def _jitter(args: Mapping[str, Any], generator: np.random.Generator, size: Size, channels: int) -> Drawn:
    order = [int(which) for which in generator.permutation(4)]
    ranges = [jitter_range(args[name], name) for name in ("brightness", "contrast", "saturation", "hue")]
    factors = [None if bounds is None else float(generator.uniform(*bounds)) for bounds in ranges]
    return {"order": order, "factors": factors}


def augmentation_space(bins: int, size: Size) -> dict[str, tuple[np.ndarray | None, bool]]:
    """RandAugment's operations in torchvision's order: the magnitude of each bin (None: it has none), and whether a
    sign is drawn for it; float32, as torch.linspace gives them."""
    width, height = size
    rounded = np.round(np.arange(bins, dtype=np.float32) / np.float32((bins - 1) / 4)) if bins > 1 else np.zeros(1)
    return {
        "Identity": (None, False),
        "ShearX": (_linspace(0.0, 0.3, bins), True),
        "ShearY": (_linspace(0.0, 0.3, bins), True),
        "TranslateX": (_linspace(0.0, 150.0 / 331.0 * width, bins), True),
        "TranslateY": (_linspace(0.0, 150.0 / 331.0 * height, bins), True),
        "Rotate": (_linspace(0.0, 30.0, bins), True),
        "Brightness": (_linspace(0.0, 0.9, bins), True),
        "Color": (_linspace(0.0, 0.9, bins), True),
        "Contrast": (_linspace(0.0, 0.9, bins), True),
        "Sharpness": (_linspace(0.0, 0.9, bins), True),
        "Posterize": (8 - rounded.astype(np.int32), False),
        "Solarize": (_linspace(255.0, 0.0, bins), False),
        "AutoContrast": (None, False),
        "Equalize": (None, False),
    }


def _linspace(start: float, end: float, count: int) -> np.ndarray:
    """torch.linspace in float32: its first half counts up from `start`, its second half down from `end`.

    torch multiplies and adds with one rounding where the CPU can; computing in float64 gives the same.
    """
    first, last = np.float32(start), np.float32(end)
    step = np.float64((last - first) / np.float32(max(count - 1, 1)))
    at = np.arange(count)
    return np.where(at < count // 2, first + step * at, last - step * (count - 1 - at)).astype(np.float32)


def _rand_augment(args: Mapping[str, Any], generator: np.random.Generator, size: Size, channels: int) -> Drawn:
    bins, magnitude = int(args["num_magnitude_bins"]), int(args["magnitude"])
    if not 0 <= magnitude < bins:
        raise BadRecipe(
            f"RandAugment: magnitude must lie from 0 to num_magnitude_bins - 1 = {bins - 1}, got {magnitude}"
        )
    space = augmentation_space(bins, size)
    names, ops = list(space), []
    for _ in range(int(args["num_ops"])):
        name = names[_below(generator, len(names))]
        magnitudes, signed = space[name]
        strength = 0.0 if magnitudes is None else float(magnitudes[magnitude])
        ops.append((name, -strength if signed and _below(generator, 2) else strength))
    return {"ops": ops}


def _erasing(args: Mapping[str, Any], generator: np.random.Generator, size: Size, channels: int) -> Drawn:
    width, height = size
    nothing: Drawn = {"box": None, "noise": None}
    if not generator.random() < args["p"]:
        return nothing
    for _ in range(TRIES):
        area, ratio = _area_and_ratio(args, generator, size)
        h, w = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if h < height and w < width:
            noise = None
            if args["value"] == "random":
                noise = generator.standard_normal((channels, h, w), dtype=np.float32)
            top, left = _below(generator, height - h + 1), _below(generator, width - w + 1)
            return {"box": (top, left, h, w), "noise": noise}
    return nothing


_DRAWS: dict[str, Callable[[Mapping[str, Any], np.random.Generator, Size, int], Drawn]] = {
    "ColorJitter": _jitter,
    "RandAugment": _rand_augment,
    "RandomCrop": _crop,
    "RandomErasing": _erasing,
    "RandomHorizontalFlip": _flip,
    "RandomResizedCrop": _resized_crop,
    "RandomVerticalFlip": _flip,
}

Box = tuple[int, int, int, int]  # top, bottom, left, right; bottom and right are outside


@dataclass(frozen=True)
class Mix:
    """The draws of mixup for one batch.

    use: whether it is mixed at all. lam: the share of a batch's own images and labels; with a box the share of the
    image's area outside the box. box: the region that CutMix pastes from the reversed batch; None: mixup.
    """

    use: bool
    lam: float = 1.0
    box: Box | None = None


def draw_mix(mixup: Mixup, generator: np.random.Generator, shape: tuple[int, ...]) -> Mix:
    """Draw how a batch of `shape` (N, C, H, W) is mixed; the generator is `draws.batch_generator`'s."""
    if not generator.random() < mixup.prob:
        return Mix(False)
    cut = mixup.cutmix_alpha > 0 and (mixup.mixup_alpha == 0 or bool(generator.random() < mixup.switch_prob))
    alpha = mixup.cutmix_alpha if cut else mixup.mixup_alpha
    lam = float(generator.beta(alpha, alpha))
    if lam == 1.0:
        return Mix(False)
    if not cut:
        return Mix(True, lam)
    box = _box(generator, shape, lam)
    top, bottom, left, right = box
    return Mix(True, 1.0 - (bottom - top) * (right - left) / float(shape[-2] * shape[-1]), box)


def _box(generator: np.random.Generator, shape: tuple[int, ...], lam: float) -> Box:
    """A box with a share 1 - lam of the area, around a centre drawn anywhere, cut off at the borders."""
    height, width = shape[-2:]
    ratio = np.sqrt(1 - lam)
    h, w = int(height * ratio), int(width * ratio)
    y, x = int(generator.integers(0, height)), int(generator.integers(0, width))
    return (
        min(max(y - h // 2, 0), height),
        min(max(y + (h + 1) // 2, 0), height),
        min(max(x - w // 2, 0), width),
        min(max(x + (w + 1) // 2, 0), width),
    )


def mix_images(images: np.ndarray, mix: Mix) -> np.ndarray:
    """The mixed batch, of the dtype of `images` (N, C, H, W), which stay as they are."""
    if not mix.use:
        return images
    if mix.box is not None:
        top, bottom, left, right = mix.box
        mixed = images.copy()
        mixed[:, :, top:bottom, left:right] = images[::-1, :, top:bottom, left:right]
        return mixed
    mixed = images * images.dtype.type(mix.lam)
    mixed += images[::-1] * images.dtype.type(1.0 - mix.lam)
    return mixed


def soft_targets(labels: np.ndarray, mix: Mix, num_classes: int, smoothing: float) -> np.ndarray:
    """float32 (N, num_classes): the smoothed one-hot rows of `labels` (N,), mixed as the images are."""
    off = smoothing / num_classes
    rows = np.full((len(labels), num_classes), off, dtype=np.float32)
    rows[np.arange(len(labels)), labels] = 1.0 - smoothing + off
    return rows * np.float32(mix.lam) + rows[::-1] * np.float32(1.0 - mix.lam)


Apply = Callable[[Part, Drawn, Any], Any]


def refuse_undrawn(transforms: Sequence[Part], keys: Sequence[Key] | None) -> None:
    """Raise Unsupported if a transform draws random numbers that cannot be made the same in both frameworks.

    Without keys that is every random transform; with keys, those that `draw` does not know.
    """
    if keys is None:
        refuse_random(transforms)
    for transform in transforms:
        if is_random(transform) and not can_draw(transform):
            raise Unsupported(
                f"{transform.name} draws from each framework's own generator, so the two batches cannot be compared; "
                f"random transforms that can be given the same draws: {', '.join(DRAWABLE)}"
            )


def apply_random(part: Part, apply: Apply, image: Any, generator: np.random.Generator) -> Any:
    """Draw what a random transform needs for this image, and pass part, draws and image to `apply`.

    Raises BadRecipe where the transform is on the wrong side of ToTensor: RandomErasing works on arrays (C, H, W), all
    others work on PIL images.
    """
    if short(part) in AFTER_TO_TENSOR:
        if isinstance(image, Image.Image):
            raise wrong_side(part)
        channels, height, width = image.shape
    elif isinstance(image, Image.Image):
        channels, (width, height) = len(image.getbands()), image.size
    else:
        raise wrong_side(part)
    return apply(part, draw(part, generator, (width, height), channels), image)


MOST_SHUFFLED = (2**32 - 1) // 20  # from here on torch draws 64 bits for each position, by another rule


def randperm(count: int, seed: int) -> np.ndarray:
    """torch.randperm(count) on the CPU after manual_seed(seed), int64 (count,).

    Both seed mt19937 with the lower 32 bits of the seed, as its authors' init_genrand does, and torch swaps place i
    with place i + (draw i modulo (count - i)): aten/src/ATen/native/TensorFactories.cpp, randperm_cpu.
    Raises Unsupported above 214 million, where torch draws by another rule.
    """
    if count >= MOST_SHUFFLED:
        raise Unsupported(f"{count} images are more than the {MOST_SHUFFLED - 1} that can be shuffled as torch does")
    bits = np.random.MT19937()
    bits._legacy_seeding(seed & 0xFFFFFFFF)  # the public way hashes the seed first
    draws = bits.random_raw(max(count - 1, 0)).astype(np.int64)
    places = np.arange(count - 1, dtype=np.int64)
    others = (places + draws % (count - places)).tolist()
    order = list(range(count))
    for place, other in enumerate(others):  # element by element, a plain list is twenty times as fast as an array
        order[place], order[other] = order[other], order[place]
    return np.array(order, dtype=np.int64)


def epoch_order(
    count: int, *, seed: int, epoch: int, shuffle: bool, drop_last: bool, rank: int = 0, world: int = 1
) -> np.ndarray:
    """The indices, int64, that process `rank` of `world` takes from `count` images in an epoch.

    Exactly those of torch.utils.data.DistributedSampler after set_epoch(epoch): every world-th index of the permutation
    of (seed + epoch). All processes get the same number. Where `count` does not divide, drop_last leaves the remainder
    out; otherwise indices from the start are repeated, several times if there are fewer images than processes.

    Raises BadInput for a count below 1 or a rank outside the world, and where drop_last leaves nothing.
    """
    if count < 1:
        raise BadInput("there are no images to put in order")
    if not 0 <= rank < world:
        raise BadInput(f"there is no process {rank} among {world}: ranks go from 0 to {world - 1}")
    if drop_last and count < world:
        raise BadInput(
            f"{count} images are too few for {world} processes with drop_last: use fewer, or drop_last: false"
        )
    order = randperm(count, seed + epoch) if shuffle else np.arange(count, dtype=np.int64)
    each = count // world if drop_last else -(-count // world)
    return np.resize(order, each * world)[rank::world]  # np.resize cuts off, or repeats from the start
