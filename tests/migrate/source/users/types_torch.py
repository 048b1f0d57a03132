"""Small models that ask of what class their layers are, and compare classes."""

from __future__ import annotations

import torch
import torch.nn as nn


def image():
    torch.manual_seed(1)
    return (torch.randn(1, 3, 6, 6),)


def vectors():
    torch.manual_seed(1)
    return (torch.randn(2, 4),)


class OfClasses(nn.Module):
    """Each layer, and whether it is of each class: no layer is of a class that torch's is not of."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.layers = nn.ModuleList(
            [
                nn.ReLU(),
                nn.ReLU6(),
                nn.Hardtanh(),
                nn.Hardsigmoid(),
                nn.ZeroPad1d(1),
                nn.ZeroPad2d(1),
                nn.ZeroPad3d(1),
                nn.ConstantPad1d(1, 0.5),
                nn.ConstantPad2d(1, 0.5),
                nn.ConstantPad3d(1, 0.5),
                nn.CircularPad1d(1),
                nn.CircularPad2d(1),
                nn.CircularPad3d(1),
                nn.ReflectionPad1d(1),
                nn.ReflectionPad2d(1),
                nn.ReplicationPad1d(1),
                nn.ReplicationPad2d(1),
                nn.ReplicationPad3d(1),
                nn.Dropout(0.1),
                nn.Dropout1d(0.1),
                nn.Dropout2d(0.1),
                nn.Dropout3d(0.1),
                nn.AlphaDropout(0.1),
                nn.FeatureAlphaDropout(0.1),
                nn.GroupNorm(2, 4),
                nn.InstanceNorm1d(4),
                nn.InstanceNorm2d(4),
                nn.InstanceNorm3d(4),
                nn.BatchNorm1d(4),
                nn.BatchNorm2d(4),
                nn.BatchNorm3d(4),
                nn.SyncBatchNorm(4),
                nn.LayerNorm(4),
                nn.RMSNorm(4),
                nn.Upsample(scale_factor=2),
                nn.UpsamplingNearest2d(scale_factor=2),
                nn.UpsamplingBilinear2d(scale_factor=2),
                nn.Conv1d(2, 2, 1),
                nn.Conv2d(2, 2, 1),
                nn.Conv3d(2, 2, 1),
                nn.ConvTranspose1d(2, 2, 1),
                nn.ConvTranspose2d(2, 2, 1),
                nn.ConvTranspose3d(2, 2, 1),
                nn.Linear(2, 2),
                nn.Bilinear(2, 2, 2),
                nn.Embedding(3, 2),
                nn.EmbeddingBag(3, 2),
                nn.Identity(),
                nn.AvgPool1d(2),
                nn.AvgPool2d(2),
                nn.AvgPool3d(2),
                nn.MaxPool1d(2),
                nn.MaxPool2d(2),
                nn.MaxPool3d(2),
                nn.AdaptiveAvgPool1d(1),
                nn.AdaptiveAvgPool2d(1),
                nn.AdaptiveAvgPool3d(1),
                nn.AdaptiveMaxPool1d(1),
                nn.AdaptiveMaxPool2d(1),
                nn.LPPool2d(2, 2),
                nn.GELU(),
                nn.SiLU(),
                nn.Mish(),
                nn.ELU(),
                nn.SELU(),
                nn.CELU(),
                nn.Sigmoid(),
                nn.Tanh(),
                nn.LogSigmoid(),
                nn.Softplus(),
                nn.Softsign(),
                nn.Softmax(1),
                nn.LogSoftmax(1),
                nn.Softmin(1),
                nn.Softmax2d(),
                nn.PReLU(),
                nn.RReLU(),
                nn.LeakyReLU(0.1),
                nn.Threshold(0.1, 0.0),
                nn.GLU(),
                nn.Hardswish(),
                nn.Hardshrink(),
                nn.Softshrink(),
                nn.Tanhshrink(),
                nn.LSTM(2, 2),
                nn.GRU(2, 2),
                nn.RNN(2, 2),
                nn.LSTMCell(2, 2),
                nn.GRUCell(2, 2),
                nn.RNNCell(2, 2),
                nn.MultiheadAttention(4, 2),
                nn.PixelShuffle(2),
                nn.PixelUnshuffle(2),
                nn.Flatten(),
                nn.Unflatten(1, (2, 2)),
                nn.ChannelShuffle(2),
                nn.LocalResponseNorm(2),
                nn.CosineSimilarity(),
                nn.PairwiseDistance(),
                nn.Fold((4, 4), 2),
                nn.Unfold(2),
                nn.Sequential(),
                nn.ModuleList(),
                nn.ModuleDict(),
                nn.TransformerEncoderLayer(4, 2, 8),
                nn.TransformerDecoderLayer(4, 2, 8),
                nn.CrossEntropyLoss(),
                nn.MSELoss(),
                nn.NLLLoss(),
                nn.L1Loss(),
                nn.SmoothL1Loss(),
                nn.HuberLoss(),
                nn.BCELoss(),
                nn.BCEWithLogitsLoss(),
                nn.KLDivLoss(),
                nn.CTCLoss(),
                nn.BatchNorm2d(4, affine=False),
                nn.LayerNorm(4, elementwise_affine=False),
                nn.LayerNorm(4, bias=False),
                nn.GroupNorm(2, 4, affine=False),
                nn.Conv2d(2, 2, 3, padding=1, padding_mode="circular"),
                nn.Conv1d(2, 2, 3, padding=1, padding_mode="reflect"),
                nn.Conv2d(2, 2, 3, padding="same"),
                nn.Conv2d(2, 2, (3, 1), padding=(1, 0), stride=(2, 1)),
                nn.Upsample(size=(4, 4), mode="bilinear"),
                nn.Upsample(scale_factor=1.5),
                nn.Embedding(3, 2, padding_idx=0),
                nn.LSTM(2, 2, num_layers=2, bidirectional=True, batch_first=True),
                nn.MaxPool2d(3, 2, 1, ceil_mode=True),
                nn.MaxPool2d(2, return_indices=True),
                nn.AvgPool2d(3, 2, 1, ceil_mode=True),
                nn.AvgPool2d(2, divisor_override=3),
                nn.AvgPool1d(3, 2, 1),
                nn.CrossEntropyLoss(label_smoothing=0.1),
                nn.CrossEntropyLoss(ignore_index=1),
                nn.Dropout(0.1, inplace=True),
                nn.ReLU(inplace=True),
                nn.GELU("tanh"),
                nn.MultiheadAttention(4, 2, kdim=3, vdim=3),
                nn.ConvTranspose2d(2, 2, 3, 2, 1, output_padding=1),
                nn.ConvTranspose1d(2, 2, 3, 2, 1, output_padding=1),
                nn.InstanceNorm2d(4, affine=True),
                nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
                nn.RNN(2, 2, nonlinearity="relu"),
                nn.AdaptiveAvgPool2d((3, 1)),
                nn.AdaptiveAvgPool2d((None, 2)),
                nn.PReLU(3),
                nn.Hardtanh(-2, 3),
                nn.Softplus(2.0),
                nn.Flatten(0),
                nn.BCEWithLogitsLoss(pos_weight=torch.ones(2)),
                nn.SmoothL1Loss(beta=0.5),
                nn.L1Loss(reduction="sum"),
                nn.NLLLoss(ignore_index=1),
                nn.Linear(2, 2, bias=False),
                nn.BatchNorm3d(4, affine=False),
                nn.ELU(0.5),
                nn.Threshold(0.1, 1.0),
                nn.LSTM(2, 2, dropout=0.1, num_layers=2),
                nn.Identity(3, a=2),
                nn.Softmax(),
                nn.ReplicationPad2d((1, 2, 0, 0)),
            ]
        )
        self.found = []
        for layer in self.layers:
            found = []
            found.append(float(isinstance(layer, nn.ReLU)))
            found.append(float(isinstance(layer, nn.ReLU6)))
            found.append(float(isinstance(layer, nn.Hardtanh)))
            found.append(float(isinstance(layer, nn.Hardsigmoid)))
            found.append(float(isinstance(layer, nn.ZeroPad1d)))
            found.append(float(isinstance(layer, nn.ZeroPad2d)))
            found.append(float(isinstance(layer, nn.ZeroPad3d)))
            found.append(float(isinstance(layer, nn.ConstantPad1d)))
            found.append(float(isinstance(layer, nn.ConstantPad2d)))
            found.append(float(isinstance(layer, nn.ConstantPad3d)))
            found.append(float(isinstance(layer, nn.CircularPad1d)))
            found.append(float(isinstance(layer, nn.CircularPad2d)))
            found.append(float(isinstance(layer, nn.CircularPad3d)))
            found.append(float(isinstance(layer, nn.ReflectionPad1d)))
            found.append(float(isinstance(layer, nn.ReflectionPad2d)))
            found.append(float(isinstance(layer, nn.ReplicationPad1d)))
            found.append(float(isinstance(layer, nn.ReplicationPad2d)))
            found.append(float(isinstance(layer, nn.ReplicationPad3d)))
            found.append(float(isinstance(layer, nn.Dropout)))
            found.append(float(isinstance(layer, nn.Dropout1d)))
            found.append(float(isinstance(layer, nn.Dropout2d)))
            found.append(float(isinstance(layer, nn.Dropout3d)))
            found.append(float(isinstance(layer, nn.AlphaDropout)))
            found.append(float(isinstance(layer, nn.FeatureAlphaDropout)))
            found.append(float(isinstance(layer, nn.GroupNorm)))
            found.append(float(isinstance(layer, nn.InstanceNorm1d)))
            found.append(float(isinstance(layer, nn.InstanceNorm2d)))
            found.append(float(isinstance(layer, nn.InstanceNorm3d)))
            found.append(float(isinstance(layer, nn.BatchNorm1d)))
            found.append(float(isinstance(layer, nn.BatchNorm2d)))
            found.append(float(isinstance(layer, nn.BatchNorm3d)))
            found.append(float(isinstance(layer, nn.SyncBatchNorm)))
            found.append(float(isinstance(layer, nn.LayerNorm)))
            found.append(float(isinstance(layer, nn.RMSNorm)))
            found.append(float(isinstance(layer, nn.Upsample)))
            found.append(float(isinstance(layer, nn.UpsamplingNearest2d)))
            found.append(float(isinstance(layer, nn.UpsamplingBilinear2d)))
            found.append(float(isinstance(layer, nn.Conv1d)))
            found.append(float(isinstance(layer, nn.Conv2d)))
            found.append(float(isinstance(layer, nn.Conv3d)))
            found.append(float(isinstance(layer, nn.ConvTranspose1d)))
            found.append(float(isinstance(layer, nn.ConvTranspose2d)))
            found.append(float(isinstance(layer, nn.ConvTranspose3d)))
            found.append(float(isinstance(layer, nn.Linear)))
            found.append(float(isinstance(layer, nn.Bilinear)))
            found.append(float(isinstance(layer, nn.Embedding)))
            found.append(float(isinstance(layer, nn.EmbeddingBag)))
            found.append(float(isinstance(layer, nn.Identity)))
            found.append(float(isinstance(layer, nn.AvgPool1d)))
            found.append(float(isinstance(layer, nn.AvgPool2d)))
            found.append(float(isinstance(layer, nn.AvgPool3d)))
            found.append(float(isinstance(layer, nn.MaxPool1d)))
            found.append(float(isinstance(layer, nn.MaxPool2d)))
            found.append(float(isinstance(layer, nn.MaxPool3d)))
            found.append(float(isinstance(layer, nn.AdaptiveAvgPool1d)))
            found.append(float(isinstance(layer, nn.AdaptiveAvgPool2d)))
            found.append(float(isinstance(layer, nn.AdaptiveAvgPool3d)))
            found.append(float(isinstance(layer, nn.AdaptiveMaxPool1d)))
            found.append(float(isinstance(layer, nn.AdaptiveMaxPool2d)))
            found.append(float(isinstance(layer, nn.LPPool2d)))
            found.append(float(isinstance(layer, nn.GELU)))
            found.append(float(isinstance(layer, nn.SiLU)))
            found.append(float(isinstance(layer, nn.Mish)))
            found.append(float(isinstance(layer, nn.ELU)))
            found.append(float(isinstance(layer, nn.SELU)))
            found.append(float(isinstance(layer, nn.CELU)))
            found.append(float(isinstance(layer, nn.Sigmoid)))
            found.append(float(isinstance(layer, nn.Tanh)))
            found.append(float(isinstance(layer, nn.LogSigmoid)))
            found.append(float(isinstance(layer, nn.Softplus)))
            found.append(float(isinstance(layer, nn.Softsign)))
            found.append(float(isinstance(layer, nn.Softmax)))
            found.append(float(isinstance(layer, nn.LogSoftmax)))
            found.append(float(isinstance(layer, nn.Softmin)))
            found.append(float(isinstance(layer, nn.Softmax2d)))
            found.append(float(isinstance(layer, nn.PReLU)))
            found.append(float(isinstance(layer, nn.RReLU)))
            found.append(float(isinstance(layer, nn.LeakyReLU)))
            found.append(float(isinstance(layer, nn.Threshold)))
            found.append(float(isinstance(layer, nn.GLU)))
            found.append(float(isinstance(layer, nn.Hardswish)))
            found.append(float(isinstance(layer, nn.Hardshrink)))
            found.append(float(isinstance(layer, nn.Softshrink)))
            found.append(float(isinstance(layer, nn.Tanhshrink)))
            found.append(float(isinstance(layer, nn.LSTM)))
            found.append(float(isinstance(layer, nn.GRU)))
            found.append(float(isinstance(layer, nn.RNN)))
            found.append(float(isinstance(layer, nn.LSTMCell)))
            found.append(float(isinstance(layer, nn.GRUCell)))
            found.append(float(isinstance(layer, nn.RNNCell)))
            found.append(float(isinstance(layer, nn.MultiheadAttention)))
            found.append(float(isinstance(layer, nn.PixelShuffle)))
            found.append(float(isinstance(layer, nn.PixelUnshuffle)))
            found.append(float(isinstance(layer, nn.Flatten)))
            found.append(float(isinstance(layer, nn.Unflatten)))
            found.append(float(isinstance(layer, nn.ChannelShuffle)))
            found.append(float(isinstance(layer, nn.LocalResponseNorm)))
            found.append(float(isinstance(layer, nn.CosineSimilarity)))
            found.append(float(isinstance(layer, nn.PairwiseDistance)))
            found.append(float(isinstance(layer, nn.Fold)))
            found.append(float(isinstance(layer, nn.Unfold)))
            found.append(float(isinstance(layer, nn.Sequential)))
            found.append(float(isinstance(layer, nn.ModuleList)))
            found.append(float(isinstance(layer, nn.ModuleDict)))
            found.append(float(isinstance(layer, nn.TransformerEncoderLayer)))
            found.append(float(isinstance(layer, nn.TransformerDecoderLayer)))
            found.append(float(isinstance(layer, nn.CrossEntropyLoss)))
            found.append(float(isinstance(layer, nn.MSELoss)))
            found.append(float(isinstance(layer, nn.NLLLoss)))
            found.append(float(isinstance(layer, nn.L1Loss)))
            found.append(float(isinstance(layer, nn.SmoothL1Loss)))
            found.append(float(isinstance(layer, nn.HuberLoss)))
            found.append(float(isinstance(layer, nn.BCELoss)))
            found.append(float(isinstance(layer, nn.BCEWithLogitsLoss)))
            found.append(float(isinstance(layer, nn.KLDivLoss)))
            found.append(float(isinstance(layer, nn.CTCLoss)))
            found.append(float(isinstance(layer, nn.Module)))
            found.append(float(isinstance(layer, nn.modules.batchnorm._BatchNorm)))
            found.append(float(isinstance(layer, nn.modules.conv._ConvNd)))
            found.append(float(isinstance(layer, nn.modules.loss._Loss)))
            found.append(float(isinstance(layer, nn.modules.conv._ConvTransposeNd)))
            found.append(float(isinstance(layer, nn.modules.instancenorm._InstanceNorm)))
            found.append(float(isinstance(layer, nn.modules.dropout._DropoutNd)))
            found.append(float(isinstance(layer, nn.modules.batchnorm._NormBase)))
            self.found.append(found)

    def forward(self, x):
        return self.fc(x), torch.tensor(self.found)


def of_what_class():
    return OfClasses(), vectors()


KINDS = (nn.Conv2d, nn.GELU, nn.LeakyReLU)
DEFAULT = nn.GELU


class InVariables(nn.Module):
    INITIALIZED = [nn.Linear, nn.Conv2d]

    def __init__(self, act=nn.GELU, conv=nn.Conv2d, skipped=(nn.GELU,)):
        super().__init__()
        self.layers = nn.Sequential(conv(3, 4, 3), act(), nn.LeakyReLU(0.2), conv(4, 2, 1))
        found = 1.0
        for layer in self.modules():
            for kind in KINDS:
                if isinstance(layer, kind):
                    found += 1
            if isinstance(layer, tuple(self.INITIALIZED)):
                found += 10
            if isinstance(layer, skipped) or type(layer) in KINDS:
                found += 100
            if any(isinstance(layer, kind) for kind in (nn.Conv2d, nn.Linear)):
                found += 1000
        self.found = found
        self.compared = [
            act == DEFAULT,
            act in KINDS,
            act not in KINDS[:1],
            act is not KINDS[2],
            conv in self.INITIALIZED,
        ]
        self.derived = [issubclass(conv, nn.Conv2d), issubclass(act, (nn.ReLU, nn.GELU)), issubclass(act, nn.Conv2d)]

    def forward(self, x):
        flags = torch.tensor([float(one) for one in [*self.compared, *self.derived]])
        return self.layers(x) * self.found, flags


def classes_in_variables():
    return InVariables(), image()
