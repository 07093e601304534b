"""One scheme of asking a file, each a function ``read(pod, context)`` that yields the asks it finds and raises `Unreadable`.

A scheme looks only at what is its own: resources by their names, annotations by theirs. Which scheme ``nvidia.com/gpu`` belongs to hangs on
what else the container asks for and on the node; `plain` and `hami` settle that between them, by `hami.claims`.
"""
