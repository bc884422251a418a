"""The search for operators that differ, by the names that users of earlier exporters know."""

from sardonyx.debug.backends import OnnxBackend
from sardonyx.debug.find_mismatch import find_mismatch
from sardonyx.debug.graph_info import GraphInfo
from sardonyx.debug.verification_options import VerificationOptions

__all__ = ["GraphInfo", "OnnxBackend", "VerificationOptions", "find_mismatch"]
