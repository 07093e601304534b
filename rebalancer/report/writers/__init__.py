"""One module a document and kind of format; each writer is a function under ``@writer``."""
