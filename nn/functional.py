"""The functions of this room under the names that torch has; each is defined beside the Cell of the same concept."""

from __future__ import annotations

from .activation import rrelu, selu, tanhshrink
from .attention import multi_head_attention_forward, scaled_dot_product_attention, softmax
from .complex_numbers import abs, complex, div, hfft, ihfft, mul, real, view_as_complex
from .convolution import conv_transpose1d, conv_transpose2d, conv_transpose3d, deform_conv2d, fold
from .dropout import alpha_dropout, stochastic_depth
from .indexing import (
    bucketize,
    embedding,
    getitem,
    index_add,
    index_copy,
    index_put,
    masked_scatter,
    nonzero,
    scatter,
    scatter_reduce,
    setitem,
    take,
    take_along_dim,
)
from .interpolate import interpolate, upsample
from .linalg import cdist, dot, einsum, linalg_norm, matrix_power, multi_dot, norm, solve, svdvals, vector_norm
from .losses import (
    binary_cross_entropy,
    ctc_loss,
    gaussian_nll_loss,
    kl_div,
    multi_margin_loss,
    pairwise_distance,
    poisson_nll_loss,
    sigmoid_focal_loss,
    soft_margin_loss,
    triplet_margin_loss,
)
from .math import (
    all,
    allclose,
    any,
    argmin,
    bincount,
    bitwise_not,
    clamp,
    count_nonzero,
    cummax,
    cummin,
    cumsum,
    equal,
    float_power,
    fmin,
    max,
    median,
    min,
    quantile,
    rsub,
    std,
    std_mean,
    sum,
    unique,
    var,
    var_mean,
)
from .normalization import batch_norm, instance_norm, layer_norm, local_response_norm, normalize, rms_norm
from .padding import pad
from .pooling import (
    adaptive_avg_pool1d,
    adaptive_max_pool1d,
    max_pool1d,
    max_unpool,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from .tensors import (
    arange,
    bernoulli,
    broadcast_tensors,
    channel_shuffle,
    contiguous,
    copy,
    diag,
    dim,
    dsplit,
    expand,
    expand_as,
    filled_bernoulli,
    filled_normal,
    filled_uniform,
    full,
    hsplit,
    meshgrid,
    multinomial,
    new_full,
    new_ones,
    new_tensor,
    new_zeros,
    normal,
    rand,
    randint,
    randn,
    randperm,
    reshape_as,
    roll,
    select,
    size,
    tensor,
    tensor_split,
    tree_flatten,
    tree_unflatten,
    type_as,
    unflatten,
    unfold_dimension,
    vsplit,
)
from .vision import (
    batched_nms,
    box_area,
    box_convert,
    box_iou,
    clip_boxes_to_image,
    generalized_box_iou,
    nms,
    remove_small_boxes,
    roi_align,
)
