"""Which devices a node has, one source a file, each a function ``read(node, context)`` that gives what it was told, or None.

A source tells what it knows and leaves the rest unknown; `reading` puts them together, and names what does not go together.
"""
