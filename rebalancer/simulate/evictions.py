"""The ``pods/eviction`` subresource, decision by decision in the order of the real one (Kubernetes 1.36).

One deliberate difference: where the real server tries 20 times over ten seconds before it gives up on a precondition that cannot hold,
this one gives up at once, since nothing in a paused world would change in between.
"""

from __future__ import annotations

from rebalancer.simulate.api_errors import ApiError, success
from rebalancer.simulate.kinds import Json
from rebalancer.simulate.pods import DISRUPTION_TARGET, TERMINAL, delete_pod, is_ready, is_terminating, phase, with_condition
from rebalancer.simulate.selectors import matches
from rebalancer.simulate.world import NotFound, World
from rebalancer.units import format_time

_MAX_DISRUPTED = 2000
_MESSAGE = "Cannot evict pod as it would violate the pod's disruption budget."


def evict(world: World, *, namespace: str, name: str, body: Json, dry_run: str = "") -> Json:
    """Carry out an Eviction; the Status of success, or ApiError with the code, cause and Retry-After of the real server."""
    options = body.get("deleteOptions") or {}
    dry = _is_dry(options, dry_run)
    _check_names(body, namespace, name)
    if options.get("ignoreStoreReadErrorWithClusterBreakingPotential"):
        raise ApiError(422, "ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: must not be set for an eviction")
    try:
        pod = world.get("pods", name, namespace)
    except NotFound as error:
        raise ApiError(404, f'pods "{name}" not found') from error
    if phase(pod) != "Pending" and phase(pod) not in TERMINAL and not is_terminating(pod):
        _check_budgets(world, pod, dry=dry)
    _check_preconditions(pod, options.get("preconditions") or {})
    if not dry:
        if not is_terminating(pod):
            pod = _mark(world, pod)
        delete_pod(world, pod, grace_s=options.get("gracePeriodSeconds"))
    return success()


def _is_dry(options: Json, query: str) -> bool:
    inside = list(options.get("dryRun") or ())
    outside = [query] if query else []
    if inside and outside and inside != outside:
        raise ApiError(500, "Internal error occurred: non-matching dry-run options in request and content")
    for value in {*inside, *outside}:
        if value != "All":
            raise ApiError(422, f'dryRun: Unsupported value: "{value}": supported values: "All"')
    return bool(inside or outside)


def _check_names(body: Json, namespace: str, name: str) -> None:
    metadata = body.get("metadata") or {}
    if body.get("kind", "Eviction") != "Eviction" or body.get("apiVersion", "policy/v1") not in ("policy/v1", "policy/v1beta1"):
        raise ApiError(400, f"the body is {body.get('apiVersion')} {body.get('kind')}, not a policy/v1 Eviction")
    if metadata.get("name") != name:
        raise ApiError(400, f"name in URL does not match name in Eviction object: {name!r} and {metadata.get('name')!r}")
    if metadata.get("namespace") not in (None, "", namespace):
        raise ApiError(400, "the namespace of the Eviction object does not match the namespace of the request")


def _check_preconditions(pod: Json, preconditions: Json) -> None:
    for field in ("uid", "resourceVersion"):
        wanted, actual = preconditions.get(field), pod["metadata"][field]
        if wanted is not None and wanted != actual:
            label = "UID" if field == "uid" else "ResourceVersion"
            named = f'Operation cannot be fulfilled on pods "{pod["metadata"]["name"]}"'
            raise ApiError(409, f"{named}: Precondition failed: {label} in precondition: {wanted}, {label} in object meta: {actual}")


def _check_budgets(world: World, pod: Json, *, dry: bool) -> None:
    namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels") or {}
    covering = [b for b in world.objects("poddisruptionbudgets", namespace) if matches(b["spec"].get("selector"), labels)]
    if len(covering) > 1:
        raise ApiError(500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
    if not covering:
        return
    budget = covering[0]
    status = budget.get("status") or {}
    if not is_ready(pod):
        policy = budget["spec"].get("unhealthyPodEvictionPolicy", "IfHealthyBudget")
        desired = int(status.get("desiredHealthy", 0))
        if policy == "AlwaysAllow" or (int(status.get("currentHealthy", 0)) >= desired > 0):
            return
    _charge(world, budget, pod, dry=dry)


def _charge(world: World, budget: Json, pod: Json, *, dry: bool) -> None:
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    allowed, disrupted = int(status.get("disruptionsAllowed", 0)), status.get("disruptedPods") or {}
    if int(status.get("observedGeneration", 0)) < budget["metadata"]["generation"]:
        raise _refused(f"The disruption budget {name} is still being processed by the server.", retry_after_s=10)
    if allowed < 0:
        raise ApiError(403, f'poddisruptionbudgets "{name}" is forbidden: pdb disruptions allowed is negative')
    if len(disrupted) > _MAX_DISRUPTED:
        raise ApiError(403, f'poddisruptionbudgets "{name}" is forbidden: DisruptedPods map too big - too many evictions not confirmed')
    if allowed == 0:
        raise _refused(f"The disruption budget {name} {_why_not(status)}")
    if not dry:
        charged = {**disrupted, pod["metadata"]["name"]: format_time(world.now)}
        world.replace("poddisruptionbudgets", {**budget, "status": {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": charged}})


def _why_not(status: Json) -> str:
    condition: Json = next((c for c in status.get("conditions") or () if c["type"] == "DisruptionAllowed"), {})
    reason, message = condition.get("reason", ""), condition.get("message", "")
    if condition.get("status") == "False" and reason == "SyncFailed":
        return f"does not allow evicting pods currently because it failed sync: {message}"
    healthy, desired = int(status.get("currentHealthy", 0)), int(status.get("desiredHealthy", 0))
    if healthy <= desired:
        return f"needs {desired} healthy pods and has {healthy} currently"
    if condition.get("status") == "False" and message:
        return f"does not allow evicting pods currently ({reason}): {message}"
    return "does not allow evicting pods currently"


def _refused(cause: str, *, retry_after_s: int | None = None) -> ApiError:
    return ApiError(429, _MESSAGE, causes=[{"reason": "DisruptionBudget", "message": cause}], retry_after_s=retry_after_s)


def _mark(world: World, pod: Json) -> Json:
    marked = with_condition(pod, DISRUPTION_TARGET, "True", world.now, reason="EvictionByEvictionAPI", message="Eviction API: evicting")
    return world.replace("pods", marked)
