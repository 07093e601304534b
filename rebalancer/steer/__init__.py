"""Steering: what makes a replacement land where its plan said, rather than where requests alone would put it.

What is written on nodes for schedulers to read (`load_annotations`, `own_annotation`), how nodes are judged by it (`dynamic`, `own_score`,
`judging`), and the verbs of kube-scheduler's extender that answer with it (`extender`). All of it is pure: values in, values out, the time
an argument. Who feeds a `NodeView`, and who writes the annotations, lives in the layers above.
"""
