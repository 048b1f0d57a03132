"""Small editions of Hugging Face transformers' models, for converted_models.py: each function makes one, and its input.

Dropout is as the library has it, in attention too.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers

TEXT = {"vocab_size": 200, "max_position_embeddings": 64}
SIZE = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
IMAGE = {"image_size": 32, "patch_size": 8}


def _model(name: str, config: str, **settings: Any) -> torch.nn.Module:
    return getattr(transformers, name)(getattr(transformers, config)(**settings))


def _text(name: str, config: str, **settings: Any) -> tuple[torch.nn.Module, list[torch.Tensor]]:
    return _model(name, config, **settings), [torch.randint(3, 200, (2, 16))]


def _image(name: str, config: str, **settings: Any) -> tuple[torch.nn.Module, list[torch.Tensor]]:
    return _model(name, config, **settings), [torch.randn(2, 3, 32, 32)]


def albert():
    return _text("AlbertModel", "AlbertConfig", embedding_size=32, **TEXT, **SIZE)


def bart():
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
    return _text("BartModel", "BartConfig", d_model=64, **sizes, **heads, **TEXT)


def bert():
    return _text("BertModel", "BertConfig", **TEXT, **SIZE)


def bert_for_masked_lm():
    return _text("BertForMaskedLM", "BertConfig", **TEXT, **SIZE)


def bert_for_sequence_classification():
    return _text("BertForSequenceClassification", "BertConfig", num_labels=3, **TEXT, **SIZE)


def bert_with_padding():
    model, (ids,) = bert()
    mask = torch.ones_like(ids)
    mask[1, 9:] = 0
    return model, [ids, mask]


def clip_vision():
    return _image("CLIPVisionModel", "CLIPVisionConfig", **IMAGE, **SIZE)


def convnext():
    sizes = {"depths": [1, 1, 2, 1], "hidden_sizes": [16, 24, 32, 48], "num_labels": 5}
    return _image("ConvNextForImageClassification", "ConvNextConfig", **sizes)


def deit():
    return _image("DeiTModel", "DeiTConfig", **IMAGE, **SIZE)


def dinov2():
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    return _image("Dinov2Model", "Dinov2Config", **sizes, **IMAGE)


def distilbert():
    sizes = {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128}
    return _text("DistilBertModel", "DistilBertConfig", **sizes, **TEXT)


def electra():
    return _text("ElectraModel", "ElectraConfig", embedding_size=64, **TEXT, **SIZE)


def gpt2():
    sizes = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64}
    return _text("GPT2LMHeadModel", "GPT2Config", vocab_size=200, **sizes)


def gpt_neox():
    return _text("GPTNeoXForCausalLM", "GPTNeoXConfig", **TEXT, **SIZE)


def llama():
    return _text("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2, **TEXT, **SIZE)


def mistral():
    return _text("MistralForCausalLM", "MistralConfig", num_key_value_heads=2, **TEXT, **SIZE)


def opt():
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 128}
    return _text("OPTForCausalLM", "OPTConfig", word_embed_proj_dim=64, **sizes, **TEXT)


def qwen2():
    return _text("Qwen2ForCausalLM", "Qwen2Config", num_key_value_heads=2, **TEXT, **SIZE)


def qwen3():
    return _text("Qwen3ForCausalLM", "Qwen3Config", num_key_value_heads=2, head_dim=16, **TEXT, **SIZE)


def resnet():
    sizes = {"embedding_size": 16, "hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 2, 1], "num_labels": 5}
    return _image("ResNetForImageClassification", "ResNetConfig", **sizes)


def roberta():
    return _text("RobertaModel", "RobertaConfig", **TEXT, **SIZE)


def swin():
    sizes = {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4]}
    return _image("SwinForImageClassification", "SwinConfig", window_size=4, num_labels=5, **sizes)


def t5_encoder():
    sizes = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}
    return _text("T5EncoderModel", "T5Config", vocab_size=200, **sizes)


def vit():
    return _image("ViTForImageClassification", "ViTConfig", num_labels=5, **IMAGE, **SIZE)
