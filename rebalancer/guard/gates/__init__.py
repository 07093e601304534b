"""One gate a file; each defines ``GATE``."""
