"""Models of Hugging Face transformers as somebody's file makes them, without what draws."""

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5EncoderModel,
    ViTConfig,
    ViTForImageClassification,
)

SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def _ids(*shape: int) -> torch.Tensor:
    return torch.randint(3, 50, shape, generator=torch.Generator().manual_seed(0))


def bert():
    config = BertConfig(
        vocab_size=50,
        max_position_embeddings=20,
        **SMALL,
        num_labels=3,
    )
    mask = torch.ones(2, 7, dtype=torch.int64)
    mask[1, 4:] = 0
    return BertForSequenceClassification(config), {"input_ids": _ids(2, 7), "attention_mask": mask}


def gpt2():
    config = GPT2Config(
        vocab_size=50, n_positions=20, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
    )
    return GPT2LMHeadModel(config), [_ids(2, 7)]


def llama_for_causal_lm():
    config = LlamaConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=24,
        max_position_embeddings=20,
    )
    return LlamaForCausalLM(config), [_ids(2, 7)]


def t5():
    config = T5Config(vocab_size=50, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, dropout_rate=0.0)
    return T5EncoderModel(config), [_ids(2, 7)]


def vit_for_image_classification():
    config = ViTConfig(
        image_size=16,
        patch_size=8,
        **SMALL,
        num_labels=5,
    )
    return ViTForImageClassification(config), [torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))]
