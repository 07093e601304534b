"""The commands, one a file. Parses, calls `runtime` and `report`, turns errors into one sentence and an exit status."""
