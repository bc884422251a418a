"""ONNX forms that users write: symbolic functions, onnxscript functions, plugins."""
