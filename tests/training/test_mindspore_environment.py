"""What a MindSpore process sets before its import."""

from __future__ import annotations

import os

import numpy as np
import pytest
from msmigrate.errors import Unsupported
from msmigrate.workers import mindspore_environment


def test_prepare_sets_what_the_user_has_not(monkeypatch):
    monkeypatch.setattr(os, "environ", {"GLOG_v": "1"})
    mindspore_environment.prepare()
    assert os.environ == {"GLOG_v": "1", "ONEDNN_MAX_CPU_ISA": "AVX2"}


def test_numpy_2_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr(np, "__version__", "2.4.6")
    with pytest.raises(Unsupported, match=r"this is NumPy 2\.4\.6: pip install 'numpy<2'"):
        mindspore_environment.prepare()
