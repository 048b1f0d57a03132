"""Models around transformers' decorators that collect hidden states, in the ways in which its own use them."""

import torch
from torch import nn
from transformers import BertConfig, PreTrainedModel
from transformers.backbone_utils import filter_output_hidden_states
from transformers.modeling_outputs import BaseModelOutput, ImageClassifierOutput
from transformers.utils.generic import can_return_tuple
from transformers.utils.output_capturing import OutputRecorder, capture_outputs


class Layer(nn.Module):
    """Gives a tuple, whose second item is the hidden state."""

    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x, **kwargs):
        gate = torch.sigmoid(x)
        return gate, self.mix(x) * gate


class Plain(nn.Module):
    """Gives a tensor."""

    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x, **kwargs):
        return torch.sigmoid(self.mix(x))


class Base(PreTrainedModel):
    config: BertConfig

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.5)
            nn.init.zeros_(module.bias)


class Tied(Base):
    """Its last hidden state is its last output, behind the norm; the first one is what comes in."""

    _can_record_outputs = {"hidden_states": OutputRecorder(Layer, index=1)}

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([Layer(config.hidden_size) for _ in range(config.num_hidden_layers)])
        self.norm = nn.LayerNorm(config.hidden_size)
        self.post_init()

    @capture_outputs
    def forward(self, x, **kwargs):
        for layer in self.layers:
            _, x = layer(x, **kwargs)
        x = self.norm(x)
        return BaseModelOutput(last_hidden_state=x)


class Halved(Base):
    """Changes what a layer gave before it goes on, so that its last output is another one."""

    _can_record_outputs = {"hidden_states": Plain}

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([Plain(config.hidden_size) for _ in range(config.num_hidden_layers)])
        self.post_init()

    @capture_outputs
    def forward(self, x, early=False, **kwargs):
        for layer in self.layers:
            x = layer(x, **kwargs)
            x = x * 0.5
        if early:
            return x
        return BaseModelOutput(last_hidden_state=x)


class Encoder(nn.Module):
    """Gives a tensor alone."""

    def __init__(self, config):
        super().__init__()
        self.layers = nn.ModuleList([Plain(config.hidden_size) for _ in range(config.num_hidden_layers)])

    def forward(self, x, **kwargs):
        for layer in self.layers:
            x = layer(x, **kwargs)
        return x


class Around(Base):
    """Has its layers in a module inside, and does not count what comes in."""

    _can_record_outputs = {"hidden_states": OutputRecorder(Plain, capture_initial_hidden_state=False)}

    def __init__(self, config):
        super().__init__(config)
        self.encoder = Encoder(config)
        self.norm = nn.LayerNorm(config.hidden_size)
        self.post_init()

    @capture_outputs(tie_last_hidden_states=False)
    def forward(self, x, **kwargs):
        found = self.encoder(x, **kwargs)
        return BaseModelOutput(last_hidden_state=self.norm(found))


class Head(Base):
    """Computes with every hidden state, and gives them only where they are requested."""

    inside = Tied

    def __init__(self, config):
        super().__init__(config)
        self.body = self.inside(config)
        self.out = nn.Linear(config.hidden_size, 3)
        self.post_init()

    @can_return_tuple
    @filter_output_hidden_states
    def forward(self, x, **kwargs):
        found = self.body(x, **kwargs)
        mixed = sum(state * (number + 1) for number, state in enumerate(found.hidden_states))
        return ImageClassifierOutput(logits=self.out(mixed), hidden_states=found.hidden_states)


class HeadAround(Head):
    inside = Around


class HeadOfHalved(Head):
    inside = Halved


class InExpression(Tied):
    """Calls such a layer inside of an expression."""

    @capture_outputs
    def forward(self, x, **kwargs):
        for layer in self.layers:
            x = x + layer(x, **kwargs)[1]
        return BaseModelOutput(last_hidden_state=x)


class HeadInExpression(Head):
    inside = InExpression


def _made(cls, **settings):
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 10}
    return cls(BertConfig(**sizes, **settings)), [torch.randn(2, 5, 8)]


def head_of_tied():
    return _made(Head)


def head_of_around():
    return _made(HeadAround)


def head_of_halved():
    return _made(HeadOfHalved)


def tied_by_configuration():
    return _made(Tied, output_hidden_states=True)


def tied_alone():
    return _made(Tied)


def head_in_expression():
    return _made(HeadInExpression)


class Labelled(Base):
    """Has a loss where it is given what should come out, which it was not."""

    def __init__(self, config):
        super().__init__(config)
        self.out = nn.Linear(config.hidden_size, 3)
        self.post_init()

    def forward(self, x, labels=None, keep=False):
        y, loss, kept = self.out(x), None, (x,) if keep else None
        if labels is not None:
            loss = (y - labels).abs().mean()
        return ImageClassifierOutput(loss, logits=y, hidden_states=kept, attentions=None)


def labelled():
    return _made(Labelled)
