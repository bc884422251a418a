"""The search for operators that differ, by the names that users of earlier exporters know."""

from sardonyx.verify.backends import OnnxBackend
from sardonyx.verify.find_mismatch import find_mismatch
from sardonyx.verify.graph_info import GraphInfo
from sardonyx.verify.verification_options import VerificationOptions

__all__ = ["GraphInfo", "OnnxBackend", "VerificationOptions", "find_mismatch"]
