"""Small editions of what people train: whole models, in the way in which they are published."""

from __future__ import annotations

import copy
import math
from argparse import Namespace
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F


def image() -> tuple[torch.Tensor]:
    torch.manual_seed(1)
    return (torch.randn(2, 3, 16, 16),)


class DoubleConv(nn.Module):
    """(convolution => [BN] => ReLU) * 2"""

    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        if not mid_channels:
            mid_channels = out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    """Upscaling then double conv"""

    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        # input is CHW
        diffY = x2.size()[2] - x1.size()[2]
        diffX = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        x = torch.cat([x2, x1], dim=1)
        return self.conv(x)


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes, bilinear=False):
        super(UNet, self).__init__()
        self.n_channels = n_channels
        factor = 2 if bilinear else 1
        self.inc = DoubleConv(n_channels, 4)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(4, 8 // factor))
        self.up1 = Up(8, 4 // factor, bilinear)
        self.outc = nn.Conv2d(4 // factor, n_classes, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x = self.up1(x2, x1)
        return self.outc(x)


def unet():
    return UNet(3, 2), image()


@dataclass
class GPTConfig:
    block_size: int = 16
    vocab_size: int = 24
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 8
    dropout: float = 0.0
    bias: bool = True  # True: bias in Linears and LayerNorms, like GPT-2. False: a bit better and faster


class LayerNorm(nn.Module):
    """LayerNorm but with an optional bias. PyTorch doesn't support simply bias=False"""

    def __init__(self, ndim, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(ndim))
        self.bias = nn.Parameter(torch.zeros(ndim)) if bias else None

    def forward(self, input):
        return F.layer_norm(input, self.weight.shape, self.weight, self.bias, 1e-5)


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        assert config.n_embd % config.n_head == 0
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.resid_dropout = nn.Dropout(config.dropout)
        self.n_head = config.n_head
        self.n_embd = config.n_embd
        self.dropout = config.dropout
        self.flash = hasattr(torch.nn.functional, "scaled_dot_product_attention")
        if not self.flash:
            print("WARNING: using slow attention. Flash Attention requires PyTorch >= 2.0")
            mask = torch.tril(torch.ones(config.block_size, config.block_size))
            self.register_buffer("bias", mask.view(1, 1, config.block_size, config.block_size))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        if self.flash:
            y = torch.nn.functional.scaled_dot_product_attention(
                q, k, v, attn_mask=None, dropout_p=self.dropout if self.training else 0, is_causal=True
            )
        else:
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
            att = F.softmax(att, dim=-1)
            y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.resid_dropout(self.c_proj(y))


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd, bias=config.bias)
        self.gelu = nn.GELU()
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd, bias=config.bias)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x):
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = LayerNorm(config.n_embd, bias=config.bias)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = LayerNorm(config.n_embd, bias=config.bias)
        self.mlp = MLP(config)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """nanoGPT."""

    def __init__(self, config):
        super().__init__()
        assert config.vocab_size is not None
        self.config = config
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(config.vocab_size, config.n_embd),
                wpe=nn.Embedding(config.block_size, config.n_embd),
                drop=nn.Dropout(config.dropout),
                h=nn.ModuleList([Block(config) for _ in range(config.n_layer)]),
                ln_f=LayerNorm(config.n_embd, bias=config.bias),
            )
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight  # https://paperswithcode.com/method/weight-tying
        self.apply(self._init_weights)
        for pn, p in self.named_parameters():
            if pn.endswith("c_proj.weight"):
                torch.nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * config.n_layer))
        self.n_params = self.get_num_params()

    def get_num_params(self, non_embedding=True):
        n_params = sum(p.numel() for p in self.parameters())
        if non_embedding:
            n_params -= self.transformer.wpe.weight.numel()
        return n_params

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if module.bias is not None:
                torch.nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, idx, targets=None):
        device = idx.device
        b, t = idx.size()
        assert t <= self.config.block_size, f"Cannot forward sequence of length {t}"
        pos = torch.arange(0, t, dtype=torch.long, device=device)
        tok_emb = self.transformer.wte(idx)
        pos_emb = self.transformer.wpe(pos)
        x = self.transformer.drop(tok_emb + pos_emb)
        for block in self.transformer.h:
            x = block(x)
        x = self.transformer.ln_f(x)
        if targets is not None:
            logits = self.lm_head(x)
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        else:
            logits = self.lm_head(x[:, [-1], :])
            loss = None
        return logits, loss


def gpt():
    torch.manual_seed(1)
    return GPT(GPTConfig()), {"idx": torch.randint(0, 24, (2, 6)), "targets": torch.randint(0, 24, (2, 6))}


def drop_path(x, drop_prob: float = 0.0, training: bool = False):
    if drop_prob == 0.0 or not training:
        return x
    keep_prob = 1 - drop_prob
    shape = (x.shape[0],) + (1,) * (x.ndim - 1)
    random_tensor = keep_prob + torch.rand(shape, dtype=x.dtype, device=x.device)
    random_tensor.floor_()  # binarize
    output = x.div(keep_prob) * random_tensor
    return output


class DropPath(nn.Module):
    def __init__(self, drop_prob=None):
        super(DropPath, self).__init__()
        self.drop_prob = drop_prob

    def forward(self, x):
        return drop_path(x, self.drop_prob, self.training)


class ViTBlock(nn.Module):
    def __init__(self, dim, num_heads, mlp_ratio=4.0, drop_path=0.0, act_layer=nn.GELU, norm_layer=nn.LayerNorm):
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.num_heads = num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)
        self.drop_path = DropPath(drop_path) if drop_path > 0.0 else nn.Identity()
        self.norm2 = norm_layer(dim)
        hidden = int(dim * mlp_ratio)
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), act_layer(), nn.Linear(hidden, dim))

    def attention(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        attn = (q @ k.transpose(-2, -1)) * self.scale
        attn = attn.softmax(dim=-1)
        x = (attn @ v).transpose(1, 2).reshape(B, N, C)
        return self.proj(x)

    def forward(self, x):
        x = x + self.drop_path(self.attention(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class ViT(nn.Module):
    """A vision transformer in timm's old way."""

    def __init__(self, img_size=16, patch_size=4, embed_dim=8, depth=2, num_heads=2, rate=0.0, norm_layer=None):
        super().__init__()
        norm_layer = norm_layer or nn.LayerNorm
        self.proj = nn.Conv2d(3, embed_dim, kernel_size=patch_size, stride=patch_size)
        num_patches = (img_size // patch_size) ** 2
        self.cls_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, num_patches + 1, embed_dim))
        dpr = [x.item() for x in torch.linspace(0, rate, depth)]
        self.blocks = nn.ModuleList(
            [ViTBlock(embed_dim, num_heads, drop_path=dpr[i], norm_layer=norm_layer) for i in range(depth)]
        )
        self.norm = norm_layer(embed_dim)
        self.head = nn.Linear(embed_dim, 5) if num_patches > 0 else nn.Identity()
        nn.init.trunc_normal_(self.pos_embed, std=0.02)

    def forward(self, x):
        B = x.shape[0]
        x = self.proj(x).flatten(2).transpose(1, 2)
        cls_tokens = self.cls_token.expand(B, -1, -1)
        x = torch.cat((cls_tokens, x), dim=1)
        x = x + self.pos_embed
        for blk in self.blocks:
            x = blk(x)
        return self.head(self.norm(x)[:, 0])


def vit():
    return ViT(), image()


def clones(module, N):
    "Produce N identical layers."
    return nn.ModuleList([copy.deepcopy(module) for _ in range(N)])


class SublayerConnection(nn.Module):
    def __init__(self, size, dropout):
        super(SublayerConnection, self).__init__()
        self.norm = nn.LayerNorm(size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, sublayer):
        "Apply residual connection to any sublayer with the same size."
        return x + self.dropout(sublayer(self.norm(x)))


class EncoderLayer(nn.Module):
    """The annotated transformer's."""

    def __init__(self, size, feed_forward, dropout):
        super(EncoderLayer, self).__init__()
        self.feed_forward = feed_forward
        self.sublayer = clones(SublayerConnection(size, dropout), 2)
        self.size = size

    def forward(self, x, mask):
        x = self.sublayer[0](x, lambda x: self.mix(x, mask))
        return self.sublayer[1](x, self.feed_forward)

    def mix(self, x, mask):
        scores = torch.matmul(x, x.transpose(-2, -1)) / math.sqrt(x.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return torch.matmul(scores.softmax(dim=-1), x)


class Encoder(nn.Module):
    def __init__(self, args):
        super().__init__()
        c = copy.deepcopy
        ff = nn.Sequential(nn.Linear(args.width, 16), nn.ReLU(), nn.Linear(16, args.width))
        self.layers = clones(EncoderLayer(args.width, c(ff), args.dropout), args.layers)
        self.norm = nn.LayerNorm(args.width)

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


def annotated():
    torch.manual_seed(1)
    mask = torch.ones(1, 5, 5).tril()
    return Encoder(Namespace(width=8, layers=2, dropout=0.0)), (torch.randn(2, 5, 8), mask)


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        m.weight.data.normal_(0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        m.weight.data.normal_(1.0, 0.02)
        m.bias.data.fill_(0)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_planes, planes, stride=1):
        super(BasicBlock, self).__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != self.expansion * planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, self.expansion * planes, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(self.expansion * planes),
            )

    def forward(self, x):
        out = self.bn1(self.conv1(x))
        out += self.shortcut(x)
        out = F.relu(out)
        return out


class ResNet(nn.Module):
    """pytorch-cifar's."""

    def __init__(self, block, num_blocks, num_classes=10):
        super(ResNet, self).__init__()
        self.in_planes = 4
        self.conv1 = nn.Conv2d(3, 4, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.layer1 = self._make_layer(block, 4, num_blocks[0], stride=1)
        self.layer2 = self._make_layer(block, 8, num_blocks[1], stride=2)
        self.linear = nn.Linear(8 * block.expansion, num_classes)
        self.apply(weights_init)

    def _make_layer(self, block, planes, num_blocks, stride):
        strides = [stride] + [1] * (num_blocks - 1)
        layers = []
        for stride in strides:
            layers.append(block(self.in_planes, planes, stride))
            self.in_planes = planes * block.expansion
        return nn.Sequential(*layers)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.layer1(out)
        out = self.layer2(out)
        out = F.avg_pool2d(out, 8)
        out = out.view(out.size(0), -1)
        return self.linear(out)


def resnet():
    return ResNet(BasicBlock, [2, 1]), image()


class VAE(nn.Module):
    """The examples' autoencoder, and a classifier of nearest codes."""

    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(6, 8)
        self.fc21 = nn.Linear(8, 3)
        self.fc22 = nn.Linear(8, 3)
        self.fc3 = nn.Linear(3, 6)
        self.codebook = nn.Embedding(5, 3)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        if self.training:
            std = torch.exp(0.5 * logvar)
            eps = torch.zeros_like(std)
            return mu + eps * std
        return mu

    def quantize(self, z):
        distances = (
            z.pow(2).sum(1, keepdim=True) - 2 * z @ self.codebook.weight.t() + self.codebook.weight.pow(2).sum(dim=1)
        )
        codes = distances.argmin(1)
        best = torch.min(distances, dim=1)
        one_hot = F.one_hot(codes, 5).float()
        quantized = one_hot @ self.codebook.weight
        quantized = z + (quantized - z).detach()
        values, indices = torch.topk(distances, 2, dim=-1, largest=False)
        picked = distances[torch.arange(z.size(0)), codes] + distances.gather(1, indices).sum(1)
        return quantized, picked + best.values + values.mean(-1)

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 6))
        z = self.reparameterize(mu, logvar)
        quantized, distance = self.quantize(z)
        return torch.sigmoid(self.fc3(quantized)), mu, logvar, distance


def vae():
    torch.manual_seed(1)
    return VAE(), (torch.randn(4, 6),)


def gpt_that_generates():
    return GPT(GPTConfig()), {"idx": torch.randint(0, 24, (2, 6))}


class Options:
    """A configuration that is shown, and changed, elsewhere."""

    def __init__(self):
        self.width = 6

    def __str__(self):
        return f"width {self.width}"

    def wider(self, by):
        self.width += by


class MaskedNet(nn.Module):
    """What it may be given besides has no type but its use."""

    def __init__(self, options):
        super().__init__()
        self.fc = nn.Linear(options.width, 3)
        self.criterion = nn.MSELoss()

    def forward(self, x, lengths=None, state=None, goal=None):
        x = self.fc(x)
        if lengths is not None:
            assert lengths.max() <= x.size(1), "too long"
            steps = torch.arange(x.size(1))[None] < lengths.view(-1, 1)
            x = x.masked_fill(~steps.unsqueeze(-1), 0.0)
        if state is not None:
            h, c = state
            x = x + h.mean() * c.sum()
        if goal is not None:
            return self.criterion(x.reshape(-1), goal.reshape(-1))
        return x

    def shown(self, figure, rows=2):
        with figure.locked():
            return figure.read(rows)


def masked():
    return MaskedNet(Options()), (torch.randn(2, 4, 6),)


class ScaledPart(nn.Module):
    """A part with an argument of its own."""

    def __init__(self, twice=False):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.twice = twice

    def forward(self, x, scale=1.0, **kwargs):
        x = self.fc(x) * scale
        return x * 2 if self.twice else x


class HandingNet(nn.Module):
    """Passes on what it is given besides, which nobody gave as it ran."""

    def __init__(self, **options):
        super().__init__()
        self.part = ScaledPart(**options)

    def forward(self, x, **kwargs):
        if kwargs.get("double"):
            x = x * 2
        return self.part(x, **kwargs)


def handing():
    return HandingNet(), (torch.randn(4, 6),)


class TakingPart(nn.Module):
    """Takes what is its own out of what it is given, and passes on the others."""

    def __init__(self):
        super().__init__()
        self.part = ScaledPart()

    def forward(self, x, **kwargs):
        kwargs.pop("output_attentions", None)
        shift = kwargs.pop("shift", 0.5)
        # as often as it is wanted
        for _ in range(kwargs.pop("times", 2)):
            x = x + shift
        return self.part(x, **kwargs)


class TakingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = TakingPart(), TakingPart()

    def forward(self, x):
        options = {"scale": 2.0, "shift": 0.25}
        return self.last(self.first(x, times=1, output_attentions=True), **options)


def taking():
    return TakingNet(), (torch.randn(4, 6),)


@dataclass
class Widths:
    """How wide it is, and how often it widens."""

    width: int = 6
    times: int = 2
    rates: list[float] = field(default_factory=lambda: [0.5, 0.25])


class WidthsNet(nn.Module):
    """Has settings of its own where it is given none."""

    def __init__(self, settings: Widths = None):
        super().__init__()
        settings = settings or Widths()
        self.settings = settings
        self.layers = nn.ModuleList(nn.Linear(settings.width, settings.width) for _ in range(settings.times))

    def forward(self, x):
        for rate, layer in zip(self.settings.rates, self.layers):
            x = x + rate * layer(x)
        return x


def settled():
    return WidthsNet(Widths(times=1)), (torch.randn(4, 6),)


class WideNet(nn.Module):
    """One that is made with an argument other than its default."""

    def __init__(self, width=4, depth=1):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, width), *[nn.Linear(width, width) for _ in range(depth)])

    def forward(self, x):
        return self.layers(x)


def made_wide():
    return WideNet(width=3), (torch.randn(4, 6),)


# What is drawn is no parameter,
# and stays until it is drawn anew.
class Noisy(nn.Module):
    """A layer whose noise is drawn when somebody asks for it, and a part that one setting or its contrary runs."""

    def __init__(self, width, residual=False):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.register_buffer("noise", torch.zeros(width))
        self.conv = nn.Sequential(nn.Conv2d(1, 1, 3, 1, 1), nn.ReLU())
        self.act, self.residual = nn.LeakyReLU(0.2), residual

    # Called before each step.
    def reset_noise(self):
        self.noise.copy_(torch.randn(self.noise.size()))

    def forward(self, x):
        x = self.act(x * (self.weight + self.noise))
        if self.residual:
            return x + self.conv(x)
        else:
            return self.conv(x)


class NoisyNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = Noisy(6, True), Noisy(6)

    def forward(self, x):
        return self.last(self.first(x))

    def reset_noise(self):
        for name, module in self.named_children():
            if "st" in name:
                module.reset_noise()


def noisy():
    return NoisyNet(), (torch.randn(2, 1, 6, 6),)
