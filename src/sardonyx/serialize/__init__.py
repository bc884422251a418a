"""Stage 5: an onnx-ir model becomes a file, its weights streamed from torch memory."""
