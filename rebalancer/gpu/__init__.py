"""GPUs as pods and nodes write about them: which resources, annotations, labels and objects say what, one scheme a file.

Everything here is pure and takes plain values (`clues`), not wire structs, so that whoever holds a pod in whatever shape can ask: the
collector for a whole cluster, a decision for the pod that will replace another, an extender for the one that kube-scheduler shows it. That
is why it is a layer of its own, just above the types it gives (`state`) and below all who ask. Names that installations change come from
the policy (`names`).

`asks`: what a pod wants. `nodes`: which devices a node has. `places`: which of them a pod holds. A text that cannot be read is never
guessed at: it is an `Unreadable`, which becomes a fault with a name.
"""
