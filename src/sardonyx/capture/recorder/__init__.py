"""One recorder for modules, functions and exported programs: the model is run once."""
