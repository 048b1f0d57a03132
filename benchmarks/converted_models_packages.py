"""Small editions of other packages' models, for converted_models.py: each function makes one, and its input.

Of diffusers, segmentation_models_pytorch, monai and open_clip, which are none of msmigrate's: `pip install --no-deps
--target FOLDER diffusers segmentation-models-pytorch monai open_clip_torch`, and FOLDER in PYTHONPATH.
"""

from __future__ import annotations

import torch

SMALL = {"block_out_channels": (16, 32), "norm_num_groups": 8}


def _image(*shape: int) -> list[torch.Tensor]:
    return [torch.randn(2, *shape)]


def diffusers_autoencoder_kl():
    from diffusers import AutoencoderKL

    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    return AutoencoderKL(latent_channels=4, **blocks, **SMALL), _image(3, 16, 16)


def diffusers_dit():
    from diffusers import DiTTransformer2DModel

    sizes = {"num_attention_heads": 2, "attention_head_dim": 8, "num_layers": 2, "norm_num_groups": 8}
    model = DiTTransformer2DModel(in_channels=4, sample_size=8, patch_size=2, num_embeds_ada_norm=10, **sizes)
    times = {"timestep": torch.tensor([3, 7]), "class_labels": torch.tensor([1, 2])}
    return model, {"hidden_states": torch.randn(2, 4, 8, 8), **times}


def diffusers_unet_2d():
    from diffusers import UNet2DModel

    blocks = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    model = UNet2DModel(sample_size=16, layers_per_block=1, attention_head_dim=8, **blocks, **SMALL)
    return model, [*_image(3, 16, 16), torch.tensor([3, 7])]


def diffusers_unet_2d_condition():
    from diffusers import UNet2DConditionModel

    down, up = ("DownBlock2D", "CrossAttnDownBlock2D"), ("CrossAttnUpBlock2D", "UpBlock2D")
    sizes = {"sample_size": 16, "layers_per_block": 1, "cross_attention_dim": 24, "attention_head_dim": 8}
    model = UNet2DConditionModel(down_block_types=down, up_block_types=up, **sizes, **SMALL)
    return model, [*_image(4, 16, 16), torch.tensor([3, 7]), torch.randn(2, 6, 24)]


def monai_densenet():
    from monai.networks.nets import DenseNet

    sizes = {"init_features": 8, "growth_rate": 4, "block_config": (2, 2)}
    return DenseNet(spatial_dims=2, in_channels=1, out_channels=3, **sizes), _image(1, 32, 32)


def monai_segresnet():
    from monai.networks.nets import SegResNet

    sizes = {"init_filters": 8, "blocks_down": (1, 1), "blocks_up": (1,)}
    return SegResNet(spatial_dims=3, in_channels=1, out_channels=2, **sizes), _image(1, 16, 16, 16)


def monai_unet():
    from monai.networks.nets import UNet

    sizes = {"channels": (8, 16, 32), "strides": (2, 2), "num_res_units": 1}
    return UNet(spatial_dims=2, in_channels=1, out_channels=2, **sizes), _image(1, 32, 32)


def open_clip_vit():
    from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg

    vision = CLIPVisionCfg(layers=2, width=64, head_width=16, patch_size=8, image_size=32)
    text = CLIPTextCfg(context_length=16, vocab_size=200, width=64, heads=4, layers=2)
    model = CLIP(embed_dim=32, vision_cfg=vision, text_cfg=text)
    return model, [*_image(3, 32, 32), torch.randint(1, 200, (2, 16))]


def smp_deeplab_v3_plus():
    import segmentation_models_pytorch as smp

    return smp.DeepLabV3Plus("resnet18", encoder_weights=None, classes=3), _image(3, 64, 64)


def smp_fpn():
    import segmentation_models_pytorch as smp

    return smp.FPN("mobilenet_v2", encoder_weights=None, classes=3), _image(3, 64, 64)


def smp_unet():
    import segmentation_models_pytorch as smp

    return smp.Unet("resnet18", encoder_weights=None, classes=3), _image(3, 64, 64)
