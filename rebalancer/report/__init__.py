"""One report model, many writers in a registry: table, wide, json, yaml, csv. Nothing here decides or acts.

What may live here: the documents that commands print (`skew`, `explanation`, `checks`, `demo`; the plan is in `plan.model`), the builders
that make them from a state and its findings, the plan file, the JSON Schemas, and `writers`, one document and format each. Everything that
came from a cluster is untrusted text until `text.clean` has seen it.
"""
