"""The names that users of earlier exporters know, over the same core."""
