"""Train a small ResNet on a folder of images, as scripts do that have grown: several processes, mixed precision, mixup,
a moving average of the weights, a warm-up with a cosine behind it, and a checkpoint that holds all of it.

torchrun --standalone --nproc_per_node 1 train.py --stop-after 2
torchrun --standalone --nproc_per_node 1 train.py --resume last.pth
"""

from __future__ import annotations

import argparse
import os
from typing import Any, TypeAlias

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, default_collate
from torch.utils.data.distributed import DistributedSampler
from torchvision import transforms
from torchvision.datasets import ImageFolder
from torchvision.models.resnet import Bottleneck, ResNet
from torchvision.transforms import v2

Loader: TypeAlias = "DataLoader[Any]"


class SmallResNet(ResNet):
    """torchvision's ResNet with one bottleneck a stage, an eighth as wide: for images of 32 pixels."""

    def __init__(self, num_classes: int) -> None:
        super().__init__(Bottleneck, [1, 1, 1, 1])
        self.fc = nn.Linear(64 * Bottleneck.expansion, num_classes)

    def _make_layer(
        self, block: type[Any], planes: int, blocks: int, stride: int = 1, dilate: bool = False
    ) -> nn.Sequential:
        return super()._make_layer(block, planes // 8, blocks, stride, dilate)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="images")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--stop-after", type=int, help="epochs, as a job that ran out of time does")
    parser.add_argument("--batch-size", type=int, default=16, help="of each process")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=5e-4)
    parser.add_argument("--warmup-steps", type=int, default=4)
    parser.add_argument("--total-steps", type=int, default=32)
    parser.add_argument("--label-smoothing", type=float, default=0.1)
    parser.add_argument("--mixup-alpha", type=float, default=0.2)
    parser.add_argument("--clip", type=float, default=5.0)
    parser.add_argument("--ema-decay", type=float, default=0.9)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--resume")
    parser.add_argument("--save", default="last.pth")
    return parser.parse_args()


def loaders(args: argparse.Namespace) -> tuple[Loader, Loader, DistributedSampler[Any]]:
    normalize = transforms.Normalize(mean=[0.5, 0.5, 0.5], std=[0.5, 0.5, 0.5])
    train_transform = transforms.Compose(
        [
            transforms.RandomResizedCrop(32, scale=(0.7, 1.0)),
            transforms.ToTensor(),
            normalize,
        ]
    )
    val_transform = transforms.Compose([transforms.Resize(32), transforms.ToTensor(), normalize])
    train_set = ImageFolder(f"{args.data}/train", train_transform)
    val_set = ImageFolder(f"{args.data}/val", val_transform)
    sampler = DistributedSampler(train_set, shuffle=True, seed=args.seed, drop_last=True)
    mixup = v2.MixUp(alpha=args.mixup_alpha, num_classes=10)
    train_loader = DataLoader(
        train_set,
        batch_size=args.batch_size,
        sampler=sampler,
        num_workers=args.workers,
        collate_fn=lambda samples: mixup(*default_collate(samples)),
        drop_last=True,
    )
    val_loader = DataLoader(val_set, batch_size=64, num_workers=args.workers)
    return train_loader, val_loader, sampler


def make_optimizer(model: nn.Module, args: argparse.Namespace) -> torch.optim.Optimizer:
    """Norms and biases are left out of the weight decay."""
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": args.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.SGD(groups, lr=args.lr, momentum=args.momentum)


def main() -> None:
    args = arguments()
    torch.manual_seed(args.seed)
    cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if cuda else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    train_loader, val_loader, sampler = loaders(args)

    net = SmallResNet(num_classes=10).to(device)
    model = DistributedDataParallel(net, device_ids=[device.index] if cuda else None)
    ema = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(args.ema_decay), use_buffers=True)
    criterion = nn.CrossEntropyLoss(label_smoothing=args.label_smoothing)
    optimizer = make_optimizer(model, args)
    warmup = LinearLR(optimizer, start_factor=0.1, total_iters=args.warmup_steps)
    cosine = CosineAnnealingLR(optimizer, T_max=args.total_steps - args.warmup_steps)
    scheduler = SequentialLR(optimizer, [warmup, cosine], milestones=[args.warmup_steps])
    scaler = torch.amp.GradScaler(device.type, init_scale=1024.0, growth_interval=10)

    start = 0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location=device, weights_only=False)
        model.load_state_dict(checkpoint["model"])
        ema.load_state_dict(checkpoint["ema"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        scaler.load_state_dict(checkpoint["scaler"])
        start = checkpoint["epoch"]

    for epoch in range(start, args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for images, targets in train_loader:
            images, targets = images.to(device), targets.to(device)
            optimizer.zero_grad()
            with torch.autocast(device.type, dtype=torch.float16):
                loss = criterion(model(images), targets)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            ema.update_parameters(net)
        if dist.get_rank() == 0:
            top1 = accuracy(ema, val_loader, device)
            print(f"epoch {epoch + 1}: loss {loss.item():.3f}, top-1 of the average {top1:.1%}", flush=True)
            torch.save(
                {
                    "model": model.state_dict(),
                    "ema": ema.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict(),
                    "scaler": scaler.state_dict(),
                    "epoch": epoch + 1,
                    "args": args,
                },
                args.save,
            )
        if args.stop_after == epoch + 1:
            break
    dist.destroy_process_group()


@torch.no_grad()
def accuracy(model: nn.Module, loader: Loader, device: torch.device) -> float:
    model.eval()
    right = sum(int((model(x.to(device)).argmax(1) == y.to(device)).sum()) for x, y in loader)
    return right / len(loader.dataset)


if __name__ == "__main__":
    main()
