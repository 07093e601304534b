"""The commands, one a file. Parses, calls `runtime` and `report`, turns errors into one sentence and an exit status.

To add a command, add a module with ``register(app)``; `main` finds it. Modules here import what is slow (numpy, the Kubernetes client)
inside their functions, so that `--help` and `version` answer at once. Data goes to stdout through `output`, everything else to stderr.
"""
