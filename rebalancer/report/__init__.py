"""One report model, many writers in a registry: table, wide, json, yaml, csv. Nothing here decides or acts."""
