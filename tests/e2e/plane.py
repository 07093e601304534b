"""A control plane on loopback: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, with their defaults where it matters.

The API server makes its own certificate, knows its users by a file of tokens and decides by RBAC. Of the controllers run those that make,
count, protect and clean up objects; the one that judges nodes by their heartbeats does not, since hollow nodes have none to lose. So a new
node keeps the taint ``node.kubernetes.io/not-ready`` until its hollow kubelet takes it away.

`Plane` is one that was started here and may be stopped and killed at will; `Borrowed` is a cluster that exists, of which only the API is
used.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import yaml

from tests.e2e.api import Api, Json, path, until
from tests.e2e.binaries import PROGRAMS, Binaries
from tests.e2e.processes import Program

START_S = 90.0
ATTEMPTS = 3
CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "disruption-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "garbage-collector-controller",
    "pod-garbage-collector-controller",
    "persistentvolume-binder-controller",
    "persistentvolumeclaim-protection-controller",
    "validatingadmissionpolicy-status-controller",
)
FAST = {"qps": 500, "burst": 1000}
"""Client limits of the controllers and the scheduler: the tests wait for what they do, not for their politeness."""


@dataclass
class Plane:
    """A context manager: runs inside, leaves nothing running. ``folder`` keeps logs, keys and data."""

    binaries: Binaries
    folder: Path
    programs: dict[str, Program] = field(default_factory=dict)
    own: bool = True
    _admin: Api | None = None
    _tokens: dict[str, str] = field(default_factory=lambda: {name: secrets.token_hex(16) for name in ("admin", *PROGRAMS[1:])})
    _server: str = ""
    _scheduling: int = 0
    """The port of kube-scheduler."""

    @property
    def api(self) -> Api:
        assert self._admin is not None, "the control plane does not run"
        return self._admin

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "admin.kubeconfig"

    def __enter__(self) -> Plane:
        self.folder.mkdir(parents=True, exist_ok=True)
        for attempt in range(ATTEMPTS):
            try:
                self._start()
            except BaseException:  # a port that was free a moment ago may be taken by now
                self.stop()
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                break
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """In the order that lets each say goodbye to those it depends on."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        for name in reversed(list(self.programs)):
            self.programs[name].stop()

    def wait_ready(self) -> None:
        """Until the API server answers, for a plane whose API server was restarted."""
        self.programs["kube-apiserver"].wait_until(self.api.ready, seconds=START_S)

    @contextlib.contextmanager
    def extended(self, *extenders: Json) -> Iterator[None]:
        """kube-scheduler is started anew with these extenders, and without any in the end."""
        try:
            self._restart_scheduler(extenders)
            yield
        finally:
            self._restart_scheduler(())

    def tails(self) -> str:
        """The ends of all logs, for a test that failed."""
        return "\n".join(f"---- {name} ({program.log})\n{program.tail(1500)}" for name, program in self.programs.items())

    def write_kubeconfig(self, name: str, token: str) -> Path:
        """For a bearer of ``token``."""
        cluster = {"server": self._server, "certificate-authority": str(self.folder / "certificates" / "apiserver.crt")}
        return write_kubeconfig(self.folder / f"{name}.kubeconfig", cluster=cluster, token=token)

    def _start(self) -> None:
        client, peer, secure, managing, self._scheduling = _free_ports(5)
        self._server = f"https://127.0.0.1:{secure}"
        self._write_files()
        self._program("etcd", self.binaries.etcd, _etcd_flags(self.folder / f"etcd-{client}", client, peer)).start()
        self._program("kube-apiserver", self.binaries.program("kube-apiserver"), self._apiserver_flags(client, secure)).start()
        self._wait_for_apiserver()
        flags = self._manager_flags(managing)
        manager = self._program("kube-controller-manager", self.binaries.program("kube-controller-manager"), flags)
        flags = [f"--config={self.folder / 'scheduler.json'}", f"--secure-port={self._scheduling}", "--bind-address=127.0.0.1"]
        scheduler = self._program("kube-scheduler", self.binaries.program("kube-scheduler"), flags)
        manager.start()
        scheduler.start()
        # The first account of a namespace is the work of a controller, so it shows that the controllers work.
        manager.wait_until(lambda: self.api.find("serviceaccounts", "default", "default") is not None, seconds=START_S)
        scheduler.wait_until(lambda: _listens(self._scheduling), seconds=START_S)

    def _restart_scheduler(self, extenders: Sequence[Json]) -> None:
        scheduler = self.programs["kube-scheduler"]
        scheduler.stop()
        self._configure_scheduler(extenders)
        scheduler.start()
        scheduler.wait_until(lambda: _listens(self._scheduling), seconds=START_S)

    def _program(self, name: str, binary: Path, flags: list[str]) -> Program:
        program = Program(name=name, command=[str(binary), *flags], log=self.folder / f"{name}.log")
        self.programs[name] = program
        return program

    def _wait_for_apiserver(self) -> None:
        program, certificate = self.programs["kube-apiserver"], self.folder / "certificates" / "apiserver.crt"
        program.wait_until(certificate.exists, seconds=START_S)
        program.wait_until(lambda: _listens(int(self._server.rpartition(":")[2])), seconds=START_S)
        for name, token in self._tokens.items():
            self.write_kubeconfig(name, token)
        self._admin = Api(self.kubeconfig)
        self.wait_ready()

    def _write_files(self) -> None:
        groups = {"admin": "system:masters", "kube-controller-manager": "system:masters", "kube-scheduler": ""}
        users = {name: name if name == "admin" else f"system:{name}" for name in self._tokens}
        rows = (f'{token},{users[name]},{users[name]},"{groups[name]}"' for name, token in self._tokens.items())
        (self.folder / "tokens.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        key = self.folder / "service-accounts.key"
        if not key.exists():
            subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True, timeout=60)
        self._configure_scheduler(())

    def _configure_scheduler(self, extenders: Sequence[Json]) -> None:
        connection = {"kubeconfig": str(self.folder / "kube-scheduler.kubeconfig"), **FAST}
        config: Json = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": connection,
            "leaderElection": {"leaderElect": False},
            "extenders": list(extenders),
        }
        (self.folder / "scheduler.json").write_text(json.dumps(config), encoding="utf-8")

    def _apiserver_flags(self, etcd: int, secure: int) -> list[str]:
        key = self.folder / "service-accounts.key"
        return [
            f"--etcd-servers=http://127.0.0.1:{etcd}",
            f"--secure-port={secure}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--cert-dir={self.folder / 'certificates'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--anonymous-auth=false",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--allow-privileged=true",
        ]

    def _manager_flags(self, secure: int) -> list[str]:
        return [
            f"--kubeconfig={self.folder / 'kube-controller-manager.kubeconfig'}",
            f"--controllers={','.join(CONTROLLERS)}",
            "--use-service-account-credentials=false",
            f"--service-account-private-key-file={self.folder / 'service-accounts.key'}",
            f"--root-ca-file={self.folder / 'certificates' / 'apiserver.crt'}",
            "--leader-elect=false",
            f"--secure-port={secure}",
            "--bind-address=127.0.0.1",
            f"--kube-api-qps={FAST['qps']}",
            f"--kube-api-burst={FAST['burst']}",
        ]


@dataclass
class Borrowed:
    """A disposable cluster that somebody else runs. Its own nodes are cordoned meanwhile, so that the tests' pods land on hollow ones."""

    kubeconfig: Path
    folder: Path
    programs: Mapping[str, Program] = field(default_factory=dict)
    own: bool = False
    _admin: Api | None = None
    _cordoned: list[str] = field(default_factory=list)

    @property
    def api(self) -> Api:
        assert self._admin is not None, "the cluster is not in use"
        return self._admin

    def __enter__(self) -> Borrowed:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._admin = Api(self.kubeconfig)
        until(self._admin.ready, f"the cluster of {self.kubeconfig} is ready", seconds=START_S)
        for node in self._admin.list("nodes"):
            if not node["spec"].get("unschedulable"):
                self._admin.patch("nodes", node["metadata"]["name"], {"spec": {"unschedulable": True}})
                self._cordoned.append(node["metadata"]["name"])
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for name in self._cordoned:
            self.api.patch("nodes", name, {"spec": {"unschedulable": None}})
        self.api.close()

    def wait_ready(self) -> None:
        until(self.api.ready, f"the cluster of {self.kubeconfig} is ready", seconds=START_S)

    def tails(self) -> str:
        return "(the logs of a borrowed cluster are with who runs it)"

    def write_kubeconfig(self, name: str, token: str) -> Path:
        """For a bearer of ``token``, at the same address and trusting the same authority."""
        found = yaml.safe_load(self.kubeconfig.read_text(encoding="utf-8"))
        contexts = {each["name"]: each["context"]["cluster"] for each in found["contexts"]}
        clusters = {each["name"]: each["cluster"] for each in found["clusters"]}
        cluster = dict(clusters[contexts[found["current-context"]]])
        if authority := cluster.get("certificate-authority"):
            cluster["certificate-authority"] = str(self.kubeconfig.parent / authority)
        return write_kubeconfig(self.folder / f"{name}.kubeconfig", cluster=cluster, token=token)


ControlPlane = Plane | Borrowed


def account_kubeconfig(plane: ControlPlane, namespace: str, account: str) -> Path:
    """A kubeconfig that acts as a service account, with a token that the API server gave it."""
    body: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    found = plane.api.request("POST", path("serviceaccounts", namespace, account, "token"), body)
    return plane.write_kubeconfig(f"{namespace}-{account}", found["status"]["token"])


def write_kubeconfig(file: Path, *, cluster: Mapping[str, object], token: str) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": dict(cluster)}],
        "users": [{"name": "e2e", "user": {"token": token}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
        "current-context": "e2e",
    }
    file.touch(mode=0o600)
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def _etcd_flags(data: Path, client: int, peer: int) -> list[str]:
    return [
        f"--data-dir={data}",
        f"--listen-client-urls=http://127.0.0.1:{client}",
        f"--advertise-client-urls=http://127.0.0.1:{client}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-cluster=default=http://127.0.0.1:{peer}",
    ]


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(closing(socket.socket())) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
