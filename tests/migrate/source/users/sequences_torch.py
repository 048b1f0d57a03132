"""Small models as users write them: text and sequences."""

from __future__ import annotations

import math
from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def words() -> tuple[torch.Tensor]:
    torch.manual_seed(1)
    return (torch.randint(0, 20, (3, 7)),)


class LSTMTagger(nn.Module):
    def __init__(self, vocab=20, embed=8, hidden=6, layers=2, dropout=0.0):
        super().__init__()
        self.embedding = nn.Embedding(vocab, embed, padding_idx=0)
        self.lstm = nn.LSTM(embed, hidden, num_layers=layers, batch_first=True, bidirectional=True, dropout=dropout)
        self.gru = nn.GRU(2 * hidden, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 4)

    def init_hidden(self, batch, device):
        return torch.zeros(1, batch, self.gru.hidden_size, device=device)

    def forward(self, x):
        out, (h, c) = self.lstm(self.embedding(x))
        hidden = self.init_hidden(x.size(0), x.device)
        out, hidden = self.gru(out, hidden)
        return self.fc(out[:, -1, :]) + self.fc(h[-1] + c[0])


def recurrent():
    return LSTMTagger(), words()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.0, max_len=50):
        super(PositionalEncoding, self).__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        pe = pe.unsqueeze(0).transpose(0, 1)
        self.register_buffer("pe", pe)

    def forward(self, x):
        x = x + self.pe[: x.size(0), :]
        return self.dropout(x)


class TransformerModel(nn.Module):
    """The tutorial's transformer."""

    def __init__(self, ntoken=20, ninp=8, nhead=2, nhid=16, nlayers=2, dropout=0.0):
        super().__init__()
        self.src_mask = None
        self.pos_encoder = PositionalEncoding(ninp, dropout)
        encoder_layers = nn.TransformerEncoderLayer(ninp, nhead, nhid, dropout)
        self.transformer_encoder = nn.TransformerEncoder(encoder_layers, nlayers)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.ninp = ninp
        self.decoder = nn.Linear(ninp, ntoken)
        self.init_weights()

    def generate_square_subsequent_mask(self, sz):
        return torch.log(torch.tril(torch.ones(sz, sz)))

    def init_weights(self):
        initrange = 0.1
        nn.init.uniform_(self.encoder.weight, -initrange, initrange)
        nn.init.zeros_(self.decoder.bias)
        self.decoder.weight.data.uniform_(-initrange, initrange)

    def forward(self, src):
        src = src.t()
        if self.src_mask is None or self.src_mask.size(0) != len(src):
            mask = self.generate_square_subsequent_mask(len(src)).to(src.device)
            self.src_mask = mask
        src = self.encoder(src) * math.sqrt(self.ninp)
        src = self.pos_encoder(src)
        output = self.transformer_encoder(src, mask=self.src_mask)
        return F.log_softmax(self.decoder(output), dim=-1)


def transformer():
    return TransformerModel(), words()


class SelfAttention(nn.Module):
    """minGPT's attention."""

    def __init__(self, n_embd=8, n_head=2, block_size=16):
        super().__init__()
        assert n_embd % n_head == 0
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.flash = hasattr(F, "scaled_dot_product_attention")
        self.register_buffer("bias", torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size))
        self.n_head = n_head
        self.n_embd = n_embd
        self.mha = nn.MultiheadAttention(n_embd, n_head, batch_first=True)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        y = y + F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=True)
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        y = self.c_proj(y)
        z, _ = self.mha(y, y, y, need_weights=False)
        w, weights = self.mha(y, y, y, key_padding_mask=torch.zeros(B, T, dtype=torch.bool, device=x.device))
        return z + w, weights


def attention():
    torch.manual_seed(1)
    return SelfAttention(), (torch.randn(2, 5, 8),)


class RMSNorm(torch.nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        output = self._norm(x.float()).type_as(x)
        return output * self.weight


def precompute_freqs(dim: int, end: int, theta: float = 10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    t = torch.arange(end)
    freqs = torch.outer(t, freqs).float()
    return torch.cos(freqs), torch.sin(freqs)


def rotate_half(x):
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


class Llama(nn.Module):
    """A block as large language models have it."""

    def __init__(self, dim: int = 8, hidden: int = 16):
        super().__init__()
        self.norm = RMSNorm(dim)
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)
        self.cos, self.sin = precompute_freqs(dim, 16)

    def forward(self, x: torch.Tensor):
        cos = torch.cat([self.cos, self.cos], -1)[: x.shape[1]].to(x.device)
        sin = torch.cat([self.sin, self.sin], -1)[: x.shape[1]].to(x.device)
        h = self.norm(x)
        h = h * cos + rotate_half(h) * sin
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


def llama():
    torch.manual_seed(1)
    return Llama(), (torch.randn(2, 5, 8),)


class StackNet(nn.Module):
    """Lists that grow and shrink: skips of a U-Net, levels from the last to the first."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))
        self.up = nn.ModuleList(nn.Linear(12, 6) for _ in range(2))

    def further(self, levels, x):
        levels.insert(0, x)
        return levels

    def forward(self, x):
        skips, levels = [], []
        for layer in self.down:
            x = torch.tanh(layer(x))
            skips.append(x)
        skips.pop(0)
        first = skips.pop(-2)
        for n, layer in enumerate(self.up):
            x = layer(torch.cat([x, skips.pop()], dim=1))
            levels.insert(n, x)
        levels.extend(level * 2 for level in [first, x])
        levels = self.further(levels, first)
        for level in reversed(levels):
            x = x * 0.5 + level
        levels.reverse()
        named = dict(zip(["a", "b"], levels))
        both = dict(named)
        both["c"] = x * levels.pop()
        more = dict(x=both["a"], y=both["b"] + both["c"])  # noqa: C408
        every = {**more, "z": x, **named}
        return {**every, "length": x * len(levels)}


def stacked():
    torch.manual_seed(1)
    return StackNet(), (torch.randn(3, 6),)


class NoteNet(nn.Module):
    """A function inside of another writes into that one's list."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x):
        noted = []

        def note(items):
            noted.extend(items)  # += would make it a name of this function

        note([self.fc(x)])
        return noted[0]


def noted():
    torch.manual_seed(1)
    return NoteNet(), (torch.randn(3, 6),)


class NamedPart(nn.Module):
    def __init__(self, size=6):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x, scale=1.0, shift=0.0, times=1, name="a00"):
        for _ in range(times):
            x = self.linear(x) * scale + shift
        return x if name == "a02" else -x


class DefaultsPart(nn.Module):
    """Changes what it is given, in every way."""

    def __init__(self):
        super().__init__()
        self.part = NamedPart()
        self.names = ["scale", "shift"]

    def forward(self, x, **kwargs):
        # half as much, where nothing else is wanted
        kwargs.setdefault("scale", 0.5)
        shift = kwargs.setdefault("shift", x.mean())
        if kwargs.setdefault("times", 1) > 1:
            x = x + shift
        for name in self.names:
            x = x + kwargs.pop(name)
        kwargs.pop("size", None)
        kwargs = {"scale": 1.5, **kwargs}
        return self.part(x, **{"name": "a01", "times": 1, **kwargs})


class ChangingNet(nn.Module):
    def __init__(self, widths=(6, 6), last=True):
        super().__init__()
        self.first, self.last = DefaultsPart(), DefaultsPart()
        self.is_last = last
        options = dict(out=1, width=widths[0])
        options.pop("out")
        self.extra = nn.Linear(options.setdefault("width", 4), 6)
        self.order = in_order(list(widths))

    def forward(self, x):
        scales = [3.0, 1.0, 2.0]
        scales.sort(reverse=True)
        if not self.is_last:
            scales.remove(1.0)
        x = self.first(x, scale=scales[0], size=4)
        scales.remove(2.0)
        x = x * scales[-1] + self.extra(x)
        found = OrderedDict()
        found["a"] = x
        found["b"] = x * 2.0
        key, value = found.popitem()
        x = x + value
        if key == "b":
            x = x + found.pop("a") * len(found)
        options = {"shift": 0.25} | {"name": f"a{len(scales):02d}"}
        options.update(times=2)
        return self.last(x, **options)


def in_order(widths):
    widths.sort()
    widths.remove(6)
    return {"first": widths, **{"first": widths[0]}}


def changing():
    return ChangingNet(), (torch.randn(4, 6),)


class OtherNamesNet(nn.Module):
    """Changes lists and dictionaries under another name, and in a method."""

    def __init__(self, more=False):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.more = more

    def gather(self, found, x):
        found.append(x)

    def forward(self, x):
        x = self.fc(x)
        found = [x]
        same = found
        same.append(x * 2.0)
        copied = found[:]
        copied.append(x)
        table = {"x": x, "list": [x], "inner": {}}
        inner = table["inner"]
        inner["y"] = x * 3.0
        parts = table["list"]
        parts += [x, x]
        other = table
        other["z"] = found[0] * 0.5
        self.gather(found, x * 0.1)
        if self.more:
            last = table["list"]
            last.append(x * 7.0)
        out = sum(found) + same[-1] + table["inner"]["y"] + table["z"] * len(table["list"]) * len(table)
        for each in table["list"]:
            out = out + each
        return out * len(copied)


def other_names():
    return OtherNamesNet(), (torch.randn(4, 6),)


class KeepingLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x, kept):
        x = self.fc(x)
        kept.append(x)
        return x


class KeepingNet(nn.Module):
    """Has layers that add their output to a list, and return it."""

    def __init__(self):
        super().__init__()
        self.first, self.last = KeepingLayer(), KeepingLayer()

    def forward(self, x):
        kept = []
        x = self.first(x, kept) + sum(kept)
        return self.last(x, [x])


def keeping():
    return KeepingNet(), (torch.randn(4, 6),)


class PackedNet(nn.Module):
    """Recurrent layers that are given packed sequences, of lengths in no order, and of other ones than they return."""

    def __init__(self, first=True, both=True):
        super().__init__()
        self.embed = nn.Embedding(11, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, 4, 2, batch_first=first, bidirectional=both)
        self.gru, self.rnn = nn.GRU(8 if both else 4, 3), nn.RNN(3, 3, batch_first=True)
        self.fc = nn.Linear(3, 2)

    def forward(self, tokens, lengths):
        x = self.embed(tokens)
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        out, (h, c) = self.lstm(packed)
        out, sizes = pad_packed_sequence(out, batch_first=True, padding_value=0.5)
        again = nn.utils.rnn.pack_padded_sequence(out, sizes.tolist(), True, False)
        out, last = self.gru(again, x.new_zeros(1, tokens.size(0), 3))
        out, end = self.rnn(out)
        y, _ = pad_packed_sequence(out, total_length=tokens.size(1))
        return self.fc(y), h, c, last, end, sizes.float()


def packed():
    torch.manual_seed(0)
    return PackedNet(), (torch.randint(1, 11, (3, 7)), torch.tensor([3, 6, 1]))


def packed_in_one_direction():
    torch.manual_seed(0)
    return PackedNet(first=False, both=False), (torch.randint(1, 11, (2, 5)), torch.tensor([5, 2]))


class Mapped(nn.Module):
    """Splits heads by functions that read what is around them."""

    def __init__(self):
        super().__init__()
        self.project, self.heads = nn.Linear(4, 12), 2

    def forward(self, x):
        heads, parts = self.heads, self.project(x).chunk(3, dim=-1)
        q, k, v = map(lambda part: part.reshape(*part.shape[:2], heads, -1).transpose(1, 2), parts)
        first, second = map(lambda one, other: one * other + heads, (q, k), (k, v))
        sums = list(map(lambda one: one.sum() / heads, [first, second]))
        most = torch.stack([*map(lambda one: one.mean() * heads, (q, v))]).sum()
        return (q @ k.transpose(-1, -2)) @ v + sums[0] * most + sums[1]


def mapped():
    return Mapped(), (torch.randn(2, 3, 4),)


class Masked(nn.Module):
    """One mask of numbers and one of bools, as in torch's tutorials: each hides what it says."""

    def __init__(self, width=8):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.layer = nn.TransformerEncoderLayer(width, 2, 12, 0.0, batch_first=True)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(width, 2, 12, 0.0, batch_first=True), 1)
        self.alike = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 2, 12, 0.0, batch_first=True), 1)

    def later(self, length):
        return torch.triu(torch.full((length, length), float("-inf")), diagonal=1)

    def forward(self, x, padding, prefix=None):
        n = x.size(1)
        y, weights = self.attention(x, x, x, padding, attn_mask=self.later(n))
        y = self.layer(y, self.later(n), padding, is_causal=True)
        y = self.decoder(y, x, tgt_mask=prefix, memory_mask=self.later(n), memory_key_padding_mask=padding)
        y = self.decoder(y, y, tgt_mask=prefix, tgt_key_padding_mask=padding)  # may be of numbers another time
        return self.alike(y, mask=self.later(n) < 0, src_key_padding_mask=padding), weights


def masked_by_two():
    torch.manual_seed(1)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])
    return Masked(), (torch.randn(3, 5, 8), padding)


class PackedToALength(nn.Module):
    """As DataParallel wants it: padded up to the input's length, shorter or longer than the longest of a batch."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 3, batch_first=True, bidirectional=True)
        self.out = nn.GRU(6, 2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=x.size(1))
        again = pack_padded_sequence(y.transpose(0, 1), lengths, enforce_sorted=False)
        z, _ = pad_packed_sequence(self.out(again)[0], padding_value=0.25, total_length=x.size(1) + 2)
        return y, z


def packed_to_a_length():
    torch.manual_seed(1)
    return PackedToALength(), (torch.randn(3, 6, 4), torch.tensor([4, 1, 5]))
