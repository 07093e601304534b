"""The verb bind, its two ends: the bytes of the request, and the bytes of the answer.

The protocol answers an error with status 500 and a sentence in the body. kube-scheduler reports the status alone, so that whoever serves
the verb logs the sentence as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from rebalancer.steer.gpushare.filtering import OK, Unreadable, unreadable

FAILED = 500


@dataclass(frozen=True, slots=True)
class BindArgs:
    namespace: str
    name: str
    uid: str
    node: str

    @property
    def pod(self) -> str:
        """As it stands in a sentence."""
        return f"pod {self.namespace}/{self.name}"


class _Args(msgspec.Struct, frozen=True, gc=False):
    pod_name: str = msgspec.field(default="", name="PodName")
    pod_namespace: str = msgspec.field(default="", name="PodNamespace")
    pod_uid: str = msgspec.field(default="", name="PodUID")
    node: str = msgspec.field(default="", name="Node")


class _Result(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    error: str


_decode = msgspec.json.Decoder(_Args).decode
_encode = msgspec.json.Encoder().encode


def read_bind_args(body: bytes) -> BindArgs:
    """Raises Unreadable."""
    try:
        args = _decode(body)
    except (ValueError, RecursionError) as problem:
        raise unreadable(body, problem) from None
    found = {"PodName": args.pod_name, "PodNamespace": args.pod_namespace, "PodUID": args.pod_uid, "Node": args.node}
    missing = [key for key, value in found.items() if not value]
    if missing:
        raise Unreadable(f"the request has no {missing[0]}; the extender API v1 of kube-scheduler is expected")
    return BindArgs(namespace=args.pod_namespace, name=args.pod_name, uid=args.pod_uid, node=args.node)


def bind_answer(error: str = "") -> tuple[int, bytes]:
    """Status and body."""
    return FAILED if error else OK, _encode(_Result(error))
