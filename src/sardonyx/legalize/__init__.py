"""Stage 3: rewrite a model of the newest opset into the opset asked for."""

from sardonyx.legalize.descend import SUPPORTED_OPSETS, legalize
from sardonyx.legalize.legality import newest_opset

__all__ = ["SUPPORTED_OPSETS", "legalize", "newest_opset"]
