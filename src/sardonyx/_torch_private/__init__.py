"""The only package that touches torch's private APIs."""

from __future__ import annotations

from sardonyx._torch_private.autograd import *
from sardonyx._torch_private.flags import *
from sardonyx._torch_private.operators import *
from sardonyx._torch_private.patches import *
from sardonyx._torch_private.programs import *
from sardonyx._torch_private.pytrees import *
from sardonyx._torch_private.recording import *
from sardonyx._torch_private.scoped_operators import *
from sardonyx._torch_private.symbolic_shapes.empty_sizes import *
from sardonyx._torch_private.symbolic_shapes.numbers import *
from sardonyx._torch_private.symbolic_shapes.shape_env_guards import *
from sardonyx._torch_private.symbolic_shapes.sizes import *
from sardonyx._torch_private.tensors.fake_execution import *
from sardonyx._torch_private.tensors.fake_tensors import *
from sardonyx._torch_private.tensors.memory import *
from sardonyx._torch_private.tensors.meta_parameters import *
from sardonyx._torch_private.tensors.wrapper_subclasses import *
from sardonyx._torch_private.torchscript import *
