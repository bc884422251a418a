"""Where the code of PyTorch and ours lies."""

from __future__ import annotations

import os

import torch

TORCH_FOLDER = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
