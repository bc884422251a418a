"""How TorchScript graphs are read: traces, and scripted programs."""
