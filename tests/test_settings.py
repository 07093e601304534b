"""Where settings come from, which source wins, and the sentence for every mistake."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest
import yaml

from rebalancer.errors import SettingsError
from rebalancer.policy.loader import parse_policy
from rebalancer.policy.model import Mode, built_in_policy
from rebalancer.policy.schema import schema_text
from rebalancer.settings import Listen, Settings, effective_mode, load_settings, parse_listen, redacted_url
from rebalancer.settings.loading import leaves, variable_of
from rebalancer.settings.model import SourceKind
from rebalancer.settings.schema import settings_schema, write_settings_schema

CONFIG = Path(__file__).parents[1] / "config"
NOWHERE = Path("/nonexistent/namespace")


def load(
    tmp_path: Path, text: str | None = None, *, flags: Mapping[str, object] | None = None, env: Mapping[str, str] | None = None
) -> Settings:
    file = None
    if text is not None:
        file = tmp_path / "settings.yaml"
        file.write_text(text)
    return load_settings(settings_file=file, flags=flags or {}, environ=env or {}, namespace_file=NOWHERE)


def refusal(
    tmp_path: Path, text: str | None = None, *, flags: Mapping[str, object] | None = None, env: Mapping[str, str] | None = None
) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, text, flags=flags, env=env)
    return caught.value


def test_the_shipped_example_is_the_defaults(tmp_path: Path) -> None:
    """The commented example shows every default as it is."""
    shipped = load_settings(settings_file=CONFIG / "settings.yaml", flags={}, environ={}, namespace_file=NOWHERE)
    assert shipped.model_dump() == load(tmp_path).model_dump()


def test_the_shipped_example_mentions_every_setting() -> None:
    """Nothing can be set that the example does not show, if only in a comment."""
    text = (CONFIG / "settings.yaml").read_text()
    assert [leaf for leaf in leaves() if f"{leaf[-1]}:" not in text] == []


def test_the_committed_schema_is_current_and_the_example_valid_by_it(tmp_path: Path) -> None:
    """`make schema` was run after the last change of the settings."""
    written = write_settings_schema(tmp_path).read_text()
    assert (CONFIG / "schema" / "settings.schema.json").read_text() == written == schema_text(settings_schema())
    example = {key: value for key, value in yaml.safe_load((CONFIG / "settings.yaml").read_text()).items() if value is not None}
    jsonschema.validate(example, settings_schema())


@pytest.mark.parametrize(
    ("text", "env", "flags", "url", "kind"),
    [
        ("prometheus: {url: http://file}", {}, {}, "http://file", SourceKind.FILE),
        (
            "prometheus: {url: http://file}",
            {"REBALANCER_PROMETHEUS__URL": "http://env"},
            {},
            "http://env",
            SourceKind.ENVIRONMENT,
        ),
        (
            "prometheus: {url: http://file}",
            {"REBALANCER_PROMETHEUS__URL": "http://env"},
            {"prometheus.url": "http://flag"},
            "http://flag",
            SourceKind.FLAG,
        ),
        ("prometheus: {url: http://file}", {"REBALANCER_PROMETHEUS__URL": ""}, {"prometheus.url": None}, "http://file", SourceKind.FILE),
    ],
)
def test_a_flag_beats_a_variable_beats_the_file_beats_the_default(
    tmp_path: Path, text: str, env: dict[str, str], flags: dict[str, object], url: str, kind: SourceKind
) -> None:
    """An empty variable and a flag that was not given say nothing."""
    settings = load(tmp_path, text, env=env, flags=flags)
    assert (settings.prometheus.url, settings.source_of("prometheus", "url")[0]) == (url, kind)


def test_values_of_one_section_may_come_from_several_sources(tmp_path: Path) -> None:
    """A variable replaces one key and leaves its neighbours in the file alone."""
    settings = load(tmp_path, "kubernetes: {qps: 5, burst: 6}", env={"REBALANCER_KUBERNETES__QPS": "7"})
    assert (settings.kubernetes.qps, settings.kubernetes.burst) == (7, 6)


def test_every_setting_can_be_a_variable(tmp_path: Path) -> None:
    """Its name is the path in capitals, with two underscores between the levels."""
    assert variable_of(("prometheus", "ca_file")) == "REBALANCER_PROMETHEUS__CA_FILE"
    env = {
        "REBALANCER_PROMETHEUS__URL": "http://p:9090/",
        "REBALANCER_PROMETHEUS__TIMEOUT": "10s",
        "REBALANCER_PROMETHEUS__HEADERS": '{"X-Scope-OrgID": "team"}',
        "REBALANCER_PROMETHEUS__INSECURE_SKIP_VERIFY": "true",
        "REBALANCER_KUBERNETES__PAGE_SIZE": "100",
        "REBALANCER_MODE": "annotate",
        "REBALANCER_LISTEN": "[::1]:9000",
        "REBALANCER_LOG__LEVEL": "DEBUG",
        "REBALANCER_POLICY_FILE": "/policy.yaml",
    }
    settings = load(tmp_path, env=env)
    assert settings.prometheus.url == "http://p:9090"
    assert settings.prometheus.timeout == 10
    assert settings.prometheus.header_values() == {"X-Scope-OrgID": "team"}
    assert settings.prometheus.insecure_skip_verify is True
    assert settings.kubernetes.page_size == 100
    assert (settings.mode, settings.listen, settings.log.level) == (Mode.ANNOTATE, Listen("::1", 9000), "debug")
    assert settings.policy_file == Path("/policy.yaml")


def test_the_file_may_be_named_by_a_variable(tmp_path: Path) -> None:
    """REBALANCER_SETTINGS stands for --settings, and --settings wins."""
    for name, timeout in (("one", "11s"), ("two", "12s")):
        (tmp_path / name).write_text(f"cycle_timeout: {timeout}")
    env = {"REBALANCER_SETTINGS": str(tmp_path / "one")}
    by_variable = load_settings(settings_file=None, flags={}, environ=env, namespace_file=NOWHERE)
    by_flag = load_settings(settings_file=tmp_path / "two", flags={}, environ=env, namespace_file=NOWHERE)
    assert (by_variable.cycle_timeout, by_flag.cycle_timeout) == (11, 12)


def test_a_cluster_changes_the_defaults(tmp_path: Path) -> None:
    """Where probes must reach it, it listens on every address and logs for machines."""
    inside = load(tmp_path, env={"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    outside = load(tmp_path)
    assert (str(inside.listen), inside.log.format) == ("0.0.0.0:8080", "json")
    assert (str(outside.listen), outside.log.format) == ("127.0.0.1:8080", "console")


def test_in_a_cluster_the_namespace_is_the_pods_own(tmp_path: Path) -> None:
    """POD_NAMESPACE says it, else the service account does; a setting wins over both."""
    file = tmp_path / "namespace"
    file.write_text("from-account\n")
    cluster = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}

    def namespace(env: dict[str, str]) -> str:
        return load_settings(settings_file=None, flags={}, environ=cluster | env, namespace_file=file).namespace

    assert namespace({}) == "from-account"
    assert namespace({"POD_NAMESPACE": "from-pod"}) == "from-pod"
    assert namespace({"POD_NAMESPACE": "from-pod", "REBALANCER_NAMESPACE": "set"}) == "set"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("REBALANCER_PROMETHEUS_URL", "did you mean REBALANCER_PROMETHEUS__URL?"),
        ("REBALANCER_MDOE", "did you mean REBALANCER_MODE?"),
        ("REBALANCER_PROMETHEUS", "did you mean REBALANCER_"),
        ("REBALANCER_POLICY", "did you mean REBALANCER_POLICY_FILE?"),
        ("REBALANCER_XYZZY_QUUX", "unset it"),
    ],
)
def test_a_variable_that_matches_no_setting_is_an_error(tmp_path: Path, name: str, hint: str) -> None:
    """It was meant to do something; the nearest name is told, the value is not."""
    message = str(refusal(tmp_path, env={name: "s3cret"}))
    assert message.startswith(f"the environment variable {name} matches no setting")
    assert hint in message
    assert "s3cret" not in message


def test_variables_of_tests_and_of_other_programs_are_left_alone(tmp_path: Path) -> None:
    """Only names with our prefix are judged, and those of the test-suite are not."""
    load(tmp_path, env={"REBALANCER_TEST_TRACES": "x", "PATH": "/bin", "OTHER_REBALANCER": "y"})


def test_the_variables_that_kubelet_sets_for_a_service_of_our_name_are_no_settings(tmp_path: Path) -> None:
    """A Service called rebalancer in the same namespace must not keep the pod from starting."""
    links = {
        "REBALANCER_PORT": "tcp://10.0.0.2:8080",
        "REBALANCER_PORT_8080_TCP": "tcp://10.0.0.2:8080",
        "REBALANCER_PORT_8080_TCP_ADDR": "10.0.0.2",
        "REBALANCER_SERVICE_HOST": "10.0.0.2",
        "REBALANCER_SERVICE_PORT_HTTP": "8080",
        "REBALANCER_METRICS_SERVICE_PORT": "8080",
    }
    load(tmp_path, env={"KUBERNETES_SERVICE_HOST": "10.0.0.1", **links})
    assert "REBALANCER_PORT" in str(refusal(tmp_path, env={"REBALANCER_PORT": "8080"}))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("prometheus:\n  ur: http://x\n", "line 2, prometheus.ur: unknown key: did you mean url?"),
        ("modus: evict\n", "line 1, modus: unknown key: did you mean mode?"),
        ("page_size: 3\n", "line 1, page_size: unknown key: it belongs at kubernetes.page_size"),
        ("prometheus: 5\n", "line 1, prometheus: must be a mapping of keys to values, not 5"),
        ("prometheus:\n  timeout: 5x\n", "line 2, prometheus.timeout: '5x' is not a duration"),
        ("kubernetes:\n  burst: many\n", "line 2, kubernetes.burst: must be a whole number, not 'many'"),
        ("kubernetes:\n  qps: .nan\n", "line 2, kubernetes.qps: must be"),
        ("mode: evikt\n", "line 1, mode: must be one of dry-run, annotate, evict, not 'evikt': did you mean evict?"),
        ("listen: 8080\n", "line 1, listen: 8080 is not an address to listen on"),
        ("listen: 127.0.0.1:99999\n", "line 1, listen: port 99999 does not exist"),
        ("context: 5\n", "line 1, context: must be text, not 5: put it in quotes"),
        ("namespace: Kube_System\n", "line 1, namespace: must match"),
        ("mode: evict\nmode: dry-run\n", "line 2, mode: the key is written twice, first in line 1"),
        ("- a\n", "line 1: settings are a mapping of keys to values, not a list"),
        ("a: [\n", "line 2: the settings cannot be read as YAML"),
        ("tls: {cert_file: /x}\n", "line 1, tls.cert_file: is set without tls.key_file"),
    ],
)
def test_a_mistake_in_the_file_names_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    """File, line, path, and the nearest key where one is unknown."""
    message = str(refusal(tmp_path, text))
    assert f"settings.yaml, {sentence}" in message
    assert "Input should" not in message


def test_a_mistake_is_told_with_the_source_that_it_came_from(tmp_path: Path) -> None:
    """The variable or the flag is named, not the file that it overrules."""
    by_variable = str(refusal(tmp_path, "mode: evict\n", env={"REBALANCER_MODE": "evikt"}))
    by_flag = str(refusal(tmp_path, "mode: evict\n", flags={"mode": "evikt"}))
    assert by_variable.startswith("the environment variable REBALANCER_MODE: must be one of")
    assert by_flag.startswith("the flag --mode: must be one of")


def test_all_mistakes_are_kept(tmp_path: Path) -> None:
    """The sentence counts them, and the error has them all."""
    error = refusal(tmp_path, "modus: x\nlisten: y\n", env={"REBALANCER_MDOE": "z"})
    assert len(error.mistakes) == 3
    assert "(and 2 more mistakes)" in error.message


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    """Settings that were meant to apply and do not exist must not be skipped."""
    with pytest.raises(SettingsError, match="does not exist"):
        load_settings(settings_file=tmp_path / "none.yaml", flags={}, environ={}, namespace_file=NOWHERE)
    with pytest.raises(SettingsError, match="does not exist"):
        load_settings(settings_file=None, flags={}, environ={"REBALANCER_SETTINGS": str(tmp_path / "none")}, namespace_file=NOWHERE)


def test_an_empty_file_and_empty_sections_say_nothing(tmp_path: Path) -> None:
    """A section whose lines are all commented out is left out."""
    assert load(tmp_path, "").model_dump() == load(tmp_path, "prometheus:\nlog:\nmode:\n").model_dump() == load(tmp_path).model_dump()


@pytest.mark.parametrize(
    ("text", "env", "flags"),
    [
        (None, {}, {"prometheus.url": "http://user:s3cret@host"}),
        (None, {"REBALANCER_PROMETHEUS__URL": "https://s3cret@host:9090"}, {}),
        ("prometheus: {url: 'http://user:s3cret@host:port'}", {}, {}),
        ("prometheus: {url: [s3cret]}", {}, {}),
        ("prometheus: {url: s3cret}", {}, {}),
        ("prometheus: {url: 'http://h?token=s3cret'}", {}, {}),
        ("prometheus: {url: http://h, headers: {Authorization: [s3cret]}}", {}, {}),
        ("prometheus: {url: http://h, headers: s3cret}", {}, {}),
        (None, {"REBALANCER_PROMETHEUS__HEADERS": "s3cret"}, {}),
        (None, {"REBALANCER_PROMETHEUS__HEADERS": '{"A": 1, "B": ["s3cret"]}', "REBALANCER_PROMETHEUS__URL": "http://h"}, {}),
    ],
)
def test_a_secret_never_enters_a_message(tmp_path: Path, text: str | None, env: dict[str, str], flags: dict[str, object]) -> None:
    """The place is named, the value is not; and a URL with credentials is refused with the remedy."""
    error = refusal(tmp_path, text, env=env, flags=flags)
    assert "s3cret" not in f"{error} {error.mistakes}"


def test_a_secret_is_not_printed_with_the_settings(tmp_path: Path) -> None:
    """The start line shows every setting, and may."""
    settings = load(tmp_path, "prometheus: {url: http://h, headers: {X-Key: s3cret}}")
    assert "s3cret" not in f"{settings!r} {settings.model_dump_json()}"


@pytest.mark.parametrize("key", ["ca_file: /x", "token_file: /x", "basic_auth_file: /x", "headers: {A: b}", "insecure_skip_verify: true"])
def test_c1_what_is_configured_for_a_prometheus_that_is_not_is_an_error(tmp_path: Path, key: str) -> None:
    """Credentials without an address were meant for something; the key is named."""
    message = str(refusal(tmp_path, f"prometheus:\n  {key}\n"))
    assert f"settings.yaml, line 2, prometheus.{key.partition(':')[0]}: is set, but there is no prometheus.url" in message


def test_c1_what_is_needed_and_not_configured_is_asked_for(tmp_path: Path) -> None:
    """One sentence with the flag and the variable."""
    with pytest.raises(SettingsError, match="--prometheus-url or REBALANCER_PROMETHEUS__URL"):
        load(tmp_path).require_prometheus_url()


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ("token_file: /a, basic_auth_file: /b", "basic_auth_file"),
        ("token_file: /a, headers: {authorization: x}", "headers"),
        ("ca_file: /a, insecure_skip_verify: true", "insecure_skip_verify"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(tmp_path: Path, keys: str, key: str) -> None:
    """Of two ways to be let in, or to trust, one would be ignored."""
    assert f"prometheus.{key}: " in str(refusal(tmp_path, f"prometheus: {{url: http://h, {keys}}}"))


def test_a_file_of_credentials_that_does_not_exist_is_an_error_at_start(tmp_path: Path) -> None:
    """Not one failure a cycle later."""
    message = str(refusal(tmp_path, "prometheus:\n  url: http://h\n  token_file: /nonexistent/token\n"))
    assert "settings.yaml, line 3, prometheus.token_file: there is no file /nonexistent/token" in message


def test_m12_http_and_https_are_accepted_and_a_token_in_the_clear_is_warned_of(tmp_path: Path) -> None:
    """A header with credentials over http gives one sentence, over https none."""
    plain = load(tmp_path, "prometheus: {url: http://h, headers: {Authorization: Bearer x}}")
    safe = load(tmp_path, "prometheus: {url: https://h, headers: {Authorization: Bearer x}}")
    assert [warning for warning in plain.warnings() if "unencrypted" in warning] != []
    assert safe.warnings() == ()


def test_the_mode_says_where_it_came_from(tmp_path: Path) -> None:
    """Flag, variable, file with line, policy, default: in that order of strength."""
    quiet = built_in_policy()
    spoken = parse_policy(
        "apiVersion: rebalancer.dev/v1alpha1\nkind: RebalancePolicy\nmetadata: {name: prod}\nspec: {mode: annotate}", origin="p"
    )
    assert effective_mode(load(tmp_path, flags={"mode": "evict"}), spoken) == (Mode.EVICT, "the flag --mode")
    assert effective_mode(load(tmp_path, env={"REBALANCER_MODE": "evict"}), spoken)[1] == "the environment variable REBALANCER_MODE"
    assert effective_mode(load(tmp_path, "\nmode: evict"), spoken)[1].endswith("settings.yaml, line 2")
    assert effective_mode(load(tmp_path), spoken) == (Mode.ANNOTATE, "policy prod")
    assert effective_mode(load(tmp_path), quiet) == (Mode.DRY_RUN, "the default")


@pytest.mark.parametrize(
    ("text", "listen"),
    [
        ("127.0.0.1:8080", Listen("127.0.0.1", 8080)),
        ("[::1]:8080", Listen("::1", 8080)),
        ("localhost:0", Listen("localhost", 0)),
        (":8080", Listen("0.0.0.0", 8080)),
    ],
)
def test_addresses_to_listen_on_are_read_and_written(text: str, listen: Listen) -> None:
    """What is written reads back the same."""
    assert parse_listen(text) == listen == parse_listen(str(listen))


@pytest.mark.parametrize("text", ["", "8080", "::1:8080", "a b:1", "h:", "h:123456", "http://h:1", None, 5])
def test_what_is_no_address_is_refused(text: object) -> None:
    """The sentence shows how to write one."""
    with pytest.raises(ValueError, match=r"address|port"):
        parse_listen(text)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:s3cret@host:9090/path?token=s3cret#s3cret", "https://host:9090/path"),
        ("http://host", "http://host"),
        ("http://[::1]:9090/a", "http://[::1]:9090/a"),
        ("http://user:s3cret@host:pass@h:x", "an unreadable address"),
        ("s3cret", "an unreadable address"),
        ("http://[s3cret", "an unreadable address"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, shown: str) -> None:
    """User, password, query and fragment are for nobody's eyes."""
    assert redacted_url(url) == shown


def test_leader_election_is_on_in_a_cluster_and_off_elsewhere(tmp_path: Path) -> None:
    """One process on a laptop has nobody to agree with."""
    assert not load(tmp_path).leader_election.enabled
    in_cluster = load(tmp_path, env={"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    assert in_cluster.leader_election.enabled
    assert in_cluster.source_of("leader_election", "enabled") == (SourceKind.DEFAULT, "the default in a cluster")
    off = load(tmp_path, env={"KUBERNETES_SERVICE_HOST": "10.0.0.1", "REBALANCER_LEADER_ELECTION__ENABLED": "false"})
    assert not off.leader_election.enabled


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("leader_election: {lease_duration: 10s}", "lease_duration"),
        ("leader_election: {renew_deadline: 2s}", "renew_deadline"),
        ("leader_election: {renew_deadline: 20s}", "lease_duration"),
        ("leader_election: {retry_period: 11s}", "renew_deadline"),
    ],
)
def test_the_times_of_leader_election_stand_in_their_order(tmp_path: Path, text: str, key: str) -> None:
    """A leader has to know that it lost before another may lead, and to try more than once before it loses."""
    error = refusal(tmp_path, text)
    assert f"leader_election.{key}: is " in error.message
    assert "keep lease_duration > renew_deadline > retry_period" in error.remedy


def test_a_short_time_for_evictions_is_told(tmp_path: Path) -> None:
    """Allowed, and likely to abandon plans on a busy API server."""
    text = "leader_election: {enabled: true, lease_duration: 11s}"
    assert load(tmp_path, text).warnings() == (
        "an eviction may take only 1 s, the rest of the lease; raise leader_election.lease_duration",
    )
    assert load(tmp_path, "leader_election: {lease_duration: 11s}").warnings() == ()
