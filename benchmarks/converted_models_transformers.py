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


# Of other kinds, chosen before any of them was run: what cannot be written stays in the list.


def beit():
    return _image("BeitForImageClassification", "BeitConfig", num_labels=5, **IMAGE, **SIZE)


def bloom():
    return _text("BloomForCausalLM", "BloomConfig", vocab_size=200, hidden_size=64, n_layer=2, n_head=4)


def clip():
    text, vision = {**TEXT, **SIZE, "eos_token_id": 199}, {**IMAGE, **SIZE}
    model = _model("CLIPModel", "CLIPConfig", text_config=text, vision_config=vision, projection_dim=32)
    return model, {"input_ids": torch.randint(3, 200, (2, 16)), "pixel_values": torch.randn(2, 3, 32, 32)}


def clip_text():
    return _text("CLIPTextModel", "CLIPTextConfig", eos_token_id=199, **TEXT, **SIZE)


def convnextv2():
    sizes = {"depths": [1, 1, 2, 1], "hidden_sizes": [16, 24, 32, 48], "num_labels": 5}
    return _image("ConvNextV2ForImageClassification", "ConvNextV2Config", **sizes)


def deberta_v2():
    relative = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8}
    return _text("DebertaV2Model", "DebertaV2Config", share_att_key=True, **relative, **TEXT, **SIZE)


def dpt():
    sizes = {"neck_hidden_sizes": [16, 24, 32, 48], "backbone_out_indices": [0, 1, 2, 3], "fusion_hidden_size": 16}
    layers = {**SIZE, "num_hidden_layers": 4}
    settings = {"is_hybrid": False, "use_auxiliary_head": False, "image_size": 64, "patch_size": 16}
    model = _model("DPTForDepthEstimation", "DPTConfig", **sizes, **layers, **settings)
    return model, [torch.randn(2, 3, 64, 64)]


def falcon():
    return _text("FalconForCausalLM", "FalconConfig", **TEXT, **SIZE)


def gemma():
    return _text("GemmaForCausalLM", "GemmaConfig", num_key_value_heads=2, head_dim=16, **TEXT, **SIZE)


def gpt_neo():
    sizes = {"hidden_size": 64, "num_layers": 2, "num_heads": 4, "intermediate_size": 128, "window_size": 8}
    return _text("GPTNeoForCausalLM", "GPTNeoConfig", attention_types=[[["global", "local"], 1]], **sizes, **TEXT)


def gptj():
    sizes = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64, "rotary_dim": 8}
    return _text("GPTJForCausalLM", "GPTJConfig", vocab_size=200, **sizes)


SPEECH = {"conv_dim": [32, 32], "conv_stride": [5, 2], "conv_kernel": [10, 3], "num_feat_extract_layers": 2}
SPEECH |= {"num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}
SPEECH |= {"apply_spec_augment": False, "layerdrop": 0.0}  # these draw from numpy, and leave out whole layers


def hubert():
    return _model("HubertModel", "HubertConfig", vocab_size=32, **SPEECH, **SIZE), [torch.randn(2, 800)]


def longformer():
    return _text("LongformerModel", "LongformerConfig", attention_window=8, **TEXT, **SIZE)


def mamba():
    return _text("MambaForCausalLM", "MambaConfig", vocab_size=200, hidden_size=64, num_hidden_layers=2, state_size=8)


def mobilebert():
    sizes = {"embedding_size": 32, "intra_bottleneck_size": 32, "num_feedforward_networks": 2}
    return _text("MobileBertModel", "MobileBertConfig", **sizes, **TEXT, **SIZE)


def mpnet():
    return _text("MPNetModel", "MPNetConfig", **TEXT, **SIZE)


def pegasus():
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "d_model": 64}
    model = _model("PegasusForConditionalGeneration", "PegasusConfig", **sizes, **heads, **TEXT)
    return model, {name: torch.randint(3, 200, (2, 16)) for name in ("input_ids", "decoder_input_ids")}


def phi():
    return _text("PhiForCausalLM", "PhiConfig", **TEXT, **SIZE)


def qwen2_moe():
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    sizes = {"shared_expert_intermediate_size": 64, "num_key_value_heads": 2}
    return _text("Qwen2MoeForCausalLM", "Qwen2MoeConfig", **experts, **sizes, **TEXT, **SIZE)


def regnet():
    sizes = {"embedding_size": 16, "hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 2, 1], "groups_width": 8}
    return _image("RegNetForImageClassification", "RegNetConfig", num_labels=5, **sizes)


def roformer():
    return _text("RoFormerModel", "RoFormerConfig", embedding_size=64, **TEXT, **SIZE)


def segformer():
    sizes = {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 24, 32, 48], "decoder_hidden_size": 32, "num_labels": 5}
    heads = {"num_attention_heads": [1, 2, 2, 4], "sr_ratios": [4, 2, 1, 1]}
    return _image("SegformerForSemanticSegmentation", "SegformerConfig", **sizes, **heads)


def siglip():
    text, vision = {**TEXT, **SIZE}, {**IMAGE, **SIZE}
    model = _model("SiglipModel", "SiglipConfig", text_config=text, vision_config=vision)
    return model, {"input_ids": torch.randint(3, 200, (2, 16)), "pixel_values": torch.randn(2, 3, 32, 32)}


def wav2vec2():
    return _model("Wav2Vec2ForCTC", "Wav2Vec2Config", vocab_size=32, **SPEECH, **SIZE), [torch.randn(2, 800)]


def whisper():
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "d_model": 64}
    places = {"max_source_positions": 16, "max_target_positions": 32, "num_mel_bins": 20}
    ends = {"vocab_size": 200, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    model = _model("WhisperForConditionalGeneration", "WhisperConfig", **sizes, **heads, **places, **ends)
    return model, {"input_features": torch.randn(2, 20, 32), "decoder_input_ids": torch.randint(3, 200, (2, 8))}


def xlnet():
    return _text("XLNetLMHeadModel", "XLNetConfig", vocab_size=200, d_model=64, n_layer=2, n_head=4, d_inner=128)


# Of those that compute with hidden states, or give feature maps.


def convnext_backbone():
    sizes = {"depths": [1, 1, 2, 1], "hidden_sizes": [16, 24, 32, 48], "out_features": ["stage2", "stage4"]}
    return _model("ConvNextBackbone", "ConvNextConfig", **sizes), [torch.randn(2, 3, 64, 64)]


def dinov2_backbone():
    sizes = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
    return _image("Dinov2Backbone", "Dinov2Config", out_features=["stage1", "stage3"], **sizes, **IMAGE)


def glpn():
    sizes = {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 24, 32, 48], "decoder_hidden_size": 16}
    heads = {"num_attention_heads": [1, 2, 2, 4], "sr_ratios": [4, 2, 1, 1]}
    return _model("GLPNForDepthEstimation", "GLPNConfig", **sizes, **heads), [torch.randn(2, 3, 64, 64)]


def upernet():
    stages = ["stage1", "stage2", "stage3", "stage4"]
    sizes = {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 24, 32, 48]}
    backbone = transformers.ConvNextConfig(out_features=stages, **sizes)
    settings = {"backbone_config": backbone, "hidden_size": 16, "use_auxiliary_head": False, "num_labels": 4}
    return _model("UperNetForSemanticSegmentation", "UperNetConfig", **settings), [torch.randn(2, 3, 64, 64)]
