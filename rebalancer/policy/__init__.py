"""What the operator wants: versioned YAML files, validated strictly by plain pydantic models.

What may live here: the models, the loader that turns a mistake into a sentence with path, line and nearest key, reload, schema export.
What may not: where things are (that is `settings`), anything that reads the cluster, any clock.
"""
