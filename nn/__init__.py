"""What torch.nn, torchvision and timm have and MindSpore lacks or gets wrong: Cells under the names that torch has.

The functions are in functional.py. Everything here is made of MindSpore's operators that work.
"""

from __future__ import annotations

from . import functional
from .activations_and_dropout import (
    SELU,
    AlphaDropout,
    DropBlock2d,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    DropPath,
    FeatureAlphaDropout,
    HardMish,
    QuickGELU,
    RReLU,
    Softplus,
    StochasticDepth,
    Tanhshrink,
)
from .attention import LogSoftmax, Softmax, Softmin
from .containers import (
    NamedCells,
    OptionalCells,
    ParameterDict,
    ParameterList,
    add_cell,
    buffer,
    change_layer,
    class_name,
    first_name,
    in_turn,
    is_class,
    layer_size,
    named_parameters,
    not_converted,
    padding_of,
    parameters,
    replace_cell,
    reset_parameters,
    starting_at,
)
from .convolution import (
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    Fold,
    ScaledStdConv2d,
    StdConv2d,
    Unfold,
)
from .indexing import EmbeddingBag, PaddedEmbedding
from .losses import (
    AsymmetricLossMultiLabel,
    AsymmetricLossSingleLabel,
    BCELoss,
    BinaryCrossEntropy,
    CosineSimilarity,
    JsdCrossEntropy,
    KLDivLoss,
    LabelSmoothingCrossEntropy,
    MultiLabelMarginLoss,
    MultiMarginLoss,
    PairwiseDistance,
    SoftMarginLoss,
    SoftTargetCrossEntropy,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from .normalization import (
    FrozenBatchNorm2d,
    GlobalResponseNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm2d,
    LocalResponseNorm,
    PartialBatchNorm1d,
    PartialBatchNorm2d,
    PartialBatchNorm3d,
    PartialGroupNorm,
    PartialLayerNorm,
    RMSNorm,
    RmsNorm2d,
    SimpleNorm,
    SimpleNorm2d,
    momentum_of,
    remove_norm,
    spectral_norm,
    weight_norm,
)
from .padding import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    PaddedConv1d,
    PaddedConv2d,
    PaddedConv3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from .pooling import (
    AdaptiveAvgMaxPool2d,
    AdaptiveAvgPool1d,
    AdaptiveMaxPool1d,
    AvgPool2dSame,
    BlurPool2d,
    LPPool3d,
    MaxUnpool1d,
    MaxUnpool2d,
    MaxUnpool3d,
    SelectAdaptivePool2d,
)
from .recurrent import pack_padded_sequence, pad_packed_sequence, run_packed
from .vision import (
    DepthToSpace,
    EcaModule,
    EffectiveSEModule,
    LayerScale,
    LayerScale2d,
    Mlp,
    Permute,
    SEModule,
    SpaceToDepth,
    SqueezeExcitation,
    SwiGLU,
    UpsamplingBilinear2d,
    UpsamplingNearest2d,
)
