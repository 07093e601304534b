"""Pieces of policies that show one feature each, for the reference page. A test loads every one with the loader that operators meet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """``level``: the class name of the model whose section shows it. ``text``: YAML from ``spec:`` on."""

    level: str
    title: str
    text: str


EXAMPLES = (
    Example(
        "Gpu",
        "A device plugin that renames its resource by model, gpushare in MiB, and a HAMi chart with names of its own",
        """\
spec:
  gpu:
    resources: {nvidia.com/a100: nvidia, nvidia.com/t4: nvidia}
    gpushare: {unit: MiB}
    hami: {count: corp.example.com/vgpu, memory: corp.example.com/vgpu-memory, memoryFactor: 256}
""",
    ),
    Example(
        "Spec",
        "Evict, look every minute, and keep everything else at its default",
        """\
spec:
  mode: evict
  interval: 1m
""",
    ),
    Example(
        "Pool",
        "Two pools: GPU nodes by a label, and the pool without a selector for all the rest",
        """\
spec:
  pools:
    - name: gpu
      nodeSelector:
        matchLabels: {accelerator: nvidia}
      signals:
        memory: {low: 40, target: 75, high: 90}
    - name: general
      signals:
        cpu: {low: 40, target: 55, high: 70}
        memory: {low: 50, target: 70, high: 85}
""",
    ),
    Example(
        "Pool",
        "A pool by expressions: everything but the control plane and spot nodes",
        """\
spec:
  pools:
    - name: workers
      nodeSelector:
        matchExpressions:
          - {key: node-role.kubernetes.io/control-plane, operator: DoesNotExist}
          - {key: lifecycle, operator: NotIn, values: [spot]}
      signals:
        cpu: {low: 40, target: 55, high: 70}
""",
    ),
    Example(
        "Threshold",
        "Deviations: hot is 15 points over the pool's mean, drained to 5 points over it, cold is 10 points under it",
        """\
spec:
  pools:
    - name: default
      thresholds: deviation
      signals:
        cpu: {low: 10, target: 5, high: 15}
        memory: {low: 10, target: 5, high: 15, weight: 0.5}
""",
    ),
    Example(
        "SignalQueries",
        "Network: bytes received, against 10 Gbit/s or what the interface says",
        """\
spec:
  signals:
    - name: network
      unit: bytes/s
      nodeQuery: 'sum by (instance) (rate(node_network_receive_bytes_total{device=~"eth.*|en.*"}[{window}]))'
      podQuery: 'sum by (namespace, pod) (rate(container_network_receive_bytes_total{pod!=""}[{window}]))'
      nodeAgeQuery: 'time() - max by (instance) (timestamp(node_network_receive_bytes_total))'
      capacity: {value: 1.25e9}   # or {query: 'sum by (instance) (node_network_speed_bytes{device=~"eth.*|en.*"})'}
      maximum: 1e11
  pools:
    - name: default
      signals:
        cpu: {low: 40, target: 55, high: 70}
        memory: {low: 50, target: 70, high: 85}
        network: {low: 30, target: 50, high: 75}
""",
    ),
    Example(
        "SignalQueries",
        "Pressure (PSI): the share of time in which something waited for a CPU. Shares of pods do not add up to the node's, "
        "so its weight is small",
        """\
spec:
  signals:
    - name: cpu_pressure
      unit: ratio
      nodeQuery: 'rate(node_pressure_cpu_waiting_seconds_total[{window}])'
      podQuery: 'max by (namespace, pod) (rate(container_pressure_cpu_waiting_seconds_total{pod!=""}[{window}]))'
      capacity: {value: 1}
      maximum: 1.05
  pools:
    - name: default
      signals:
        cpu: {low: 40, target: 55, high: 70}
        cpu_pressure: {low: 5, target: 10, high: 25, weight: 0.2}
""",
    ),
    Example(
        "Metrics",
        "Judge the 95th percentile of ten minutes, on exporters that are scraped every minute",
        """\
spec:
  metrics: {window: 10m, statistic: p95, maxAge: 4m}
""",
    ),
    Example(
        "Confirm",
        "Slower: over `high` in 12 of the last 15 minutes",
        """\
spec:
  confirm: {windows: 15, atLeast: 12, step: 1m}
""",
    ),
    Example(
        "Budgets",
        "At most 5 evictions in half an hour, and a tenth of a workload's pods",
        """\
spec:
  budgets: {window: 30m, total: 5, perNode: 1, perNamespace: 2, perWorkload: 10%}
""",
    ),
    Example(
        "Cooldown",
        "A workload rests an hour after a move, then two, four, eight, at most a day",
        """\
spec:
  cooldown: {workload: 1h, node: 5m, backoff: 2, max: 1d}
""",
    ),
    Example(
        "Victims",
        "Nothing of the priority of production and above, and only workloads with three replicas and more",
        """\
spec:
  victims: {priorityBelow: production, minReplicas: 3, minAge: 30m, persistentVolumes: refuse}
""",
    ),
    Example(
        "ClassRules",
        "Only services move; training and notebooks stay",
        """\
spec:
  victims:
    classes: {serving: allow, batch: refuse, experiment: refuse, training: refuse, unknown: refuse}
""",
    ),
    Example(
        "Names",
        'Opt-in only, in the namespaces of one team: pods or workloads that carry `rebalancer.dev/evict: "true"`',
        """\
spec:
  victims:
    requireOptIn: true
    namespaces: {include: [team-a-*], exclude: [kube-system, team-a-billing]}
""",
    ),
    Example(
        "Anticipation",
        "Peaks of up to half an hour that come every day are left to pass",
        """\
spec:
  anticipation: {horizon: 30m}
""",
    ),
    Example(
        "Gain",
        "Only moves that cure a tenth of a node's excess; a start of five minutes is nothing special",
        """\
spec:
  gain: {minRelative: 10, disruptionCost: 0.005, startUp: 5m}
""",
    ),
    Example(
        "Steering",
        "No taints on nodes; fewer moves will be sure to land well",
        """\
spec:
  steering: {softTaint: false}
""",
    ),
    Example(
        "Breaker",
        "Stop at two nodes that are not Ready, or at the first replacement that stays pending for two minutes",
        """\
spec:
  breaker: {maxNotReady: 1, maxPendingAfterMove: 1, pendingAfter: 2m}
""",
    ),
    Example(
        "Quarantine",
        "Accept one return, and rest for a day after the second",
        """\
spec:
  quarantine: {returns: 2, hold: 1d}
""",
    ),
)
