"""The Helm chart: a matrix of values is rendered, and what comes out is valid for Kubernetes and for Tocsin."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from helm_python.chart import Chart, lint
from helm_python.errors import HelmError

from tests.deploy.files import DEPLOY, config_check, unknown_settings
from tests.docs.blocks import blocks_of
from tests.support.cases import each
from tests.support.promtool import promtool

CHART = DEPLOY / "helm" / "tocsin"
#: The oldest that the chart admits, one between, and the newest that the validator knows.
VERSIONS = ("1.27", "1.32", "1.37")
#: Kinds of other projects, of which the validator has no schema.
FOREIGN = {"ServiceMonitor", "PrometheusRule", "HTTPRoute"}

#: The least that an install needs.
ONE: dict[str, Any] = {"secrets": {"adminKey": {"name": "keys"}}}
STORE = {"name": "db", "key": "url"}
CLUSTER = {"replicas": 3, "secrets": {"store": STORE, "adminKey": {"name": "keys"}, "clusterSecret": {"name": "keys"}}}
MATRIX: dict[str, dict[str, Any]] = {
    "defaults": ONE,
    "one node": {
        "secrets": {"adminKey": {"name": "keys"}},
        "persistence": {"storageClass": "fast", "size": "50Gi"},
        "settings": 'log_level = "debug"\n\n[sqlite]\nsynchronous = "FULL"\n',
    },
    "cluster": CLUSTER,
    "another cluster secret": {
        **CLUSTER,
        "secrets": {
            **CLUSTER["secrets"],
            "clusterSecret": {"name": "keys", "key": "cluster-secret-2"},
            "clusterSecretFormer": {"name": "keys", "key": "cluster-secret"},
        },
    },
    "everything": {
        **CLUSTER,
        "replicas": 12,
        "secrets": {
            **CLUSTER["secrets"],
            "agentDatabase": {"name": "db", "key": "agent"},
            "broker": {"name": "nats", "key": "url"},
            "secretsKey": {"name": "keys"},
        },
        "image": {
            "repository": "registry.example/tocsin",
            "digest": f"sha256:{'0' * 64}",
            "pullSecrets": [{"name": "p"}],
        },
        "leaveDelaySeconds": 10,
        "drainTimeoutSeconds": 120,
        "peerTls": {"secretName": "peers"},
        "migrationJob": {
            "enabled": True,
            "store": {"name": "owner"},
            "agentDatabase": {"name": "owner", "key": "agent"},
        },
        "ingress": {"enabled": True, "host": "tocsin.example", "className": "nginx", "tlsSecretName": "web"},
        "httpRoute": {
            "enabled": True,
            "parentRefs": [{"name": "public", "namespace": "infra"}],
            "hostnames": ["t.example"],
        },
        "networkPolicy": {"apiFrom": [{"namespaceSelector": {"matchLabels": {"team": "billing"}}}]},
        "monitoring": {
            "serviceMonitor": {
                "enabled": True,
                "labels": {"release": "prom"},
                "key": {"name": "keys", "key": "metrics"},
            },
            "prometheusRule": {"enabled": True, "labels": {"release": "prom"}},
            "dashboards": {"enabled": True},
        },
        "podLabels": {"team": "timers"},
        "podAnnotations": {"example": "yes"},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "only", "operator": "Exists"}],
        "priorityClassName": "high",
        "affinity": {"nodeAffinity": {}},
        "extraEnv": [{"name": "TOCSIN_LOG_LEVEL", "value": "info"}],
        "settings": 'trusted_proxies = ["10.0.0.0/8"]\n\n[ui]\norigins = ["https://tocsin.example"]\n',
    },
}


(PAGE,) = [yaml.safe_load(block.text) for block in blocks_of("docs/how-to/deploy.md") if block.language == "yaml"]
MATRIX["the page's"] = PAGE


def test_the_page_makes_each_secret_that_its_values_name():
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    named = {
        PAGE["monitoring"]["serviceMonitor"]["key"]["name"]: {defaults["monitoring"]["serviceMonitor"]["key"]["key"]}
    }
    for name, secret in PAGE["secrets"].items():
        named.setdefault(secret["name"], set()).add(defaults["secrets"][name]["key"])
    typed = "".join(block.text for block in blocks_of("docs/how-to/deploy.md") if block.language == "sh")
    made = re.findall(r"create secret generic (\S+)((?: \\\n +--from-literal=[^\\\n]*[^\\\s])+)", typed)
    assert {name: set(re.findall(r"--from-literal=([\w-]+)=", literals)) for name, literals in made} == named


@pytest.fixture(scope="module")
def chart():
    """The chart, loaded once."""
    with Chart.load(CHART) as loaded:
        yield loaded


def render(
    chart: Chart, values: dict[str, Any], release: str = "tocsin", namespace: str = "timers"
) -> list[dict[str, Any]]:
    """The objects that Helm would create."""
    rendered = chart.render(values=values, name=release, namespace=namespace)
    return [
        found
        for path, text in rendered.items()
        if not path.endswith("NOTES.txt")
        for found in yaml.safe_load_all(text)
        if found is not None
    ]


def one(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = [item for item in objects if item["kind"] == kind and "helm.sh/hook" not in str(item["metadata"])]
    return found


def test_helm_finds_no_fault():
    found = lint(CHART, strict=True)
    assert found["errors"] == []
    assert [message for message in found["messages"] if message["severity"] > 1] == []


@each("values", MATRIX.values())
def test_what_is_rendered_is_valid_for_kubernetes(chart: Chart, values: dict[str, Any]):
    objects = render(chart, values)
    for item in objects:
        if item["kind"] not in FOREIGN:
            for version in VERSIONS:
                kubernetes_validate.validate(item, version, strict=True)
    names = [(item["kind"], item["metadata"]["name"]) for item in objects]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("values", MATRIX.values(), ids=list(MATRIX))
def test_the_settings_of_pods_are_accepted(chart: Chart, values: dict[str, Any], tmp_path: Path):
    """As the nodes will see them: the file, the variables, and files where Secrets are mounted."""
    objects = render(chart, values)
    workloads = [item for item in objects if item["kind"] in ("StatefulSet", "Job")]
    settings = {item["metadata"]["name"]: item["data"] for item in objects if item["kind"] == "ConfigMap"}
    assert len(workloads) == 1 + bool(values.get("migrationJob"))
    for workload in workloads:
        folder = tmp_path / workload["kind"]
        environment = mounted(workload["spec"]["template"]["spec"], settings, folder)
        assert unknown_settings(environment.keys() - {"TOCSIN_CONFIG"}) == set()
        assert config_check(environment, folder) == ""


def mounted(pod: dict[str, Any], settings: dict[str, dict[str, str]], folder: Path) -> dict[str, str]:
    """The environment of the pod's container, with the files of its volumes in a folder instead of `/`."""
    secrets = {
        "adminKey": "k" * 32, "store": "postgresql://t:secret@db/t", "agentDatabase": "postgresql://t:secret@db/a",
        "broker": "nats://nats:4222", "clusterSecret": "c" * 32, "clusterSecretFormer": "f" * 32,
        "secretsKey": "a" * 64,
    }  # fmt: skip
    (container,) = pod["containers"]
    for volume in pod["volumes"]:
        places = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == volume["name"]]
        assert places, f"{volume['name']} is mounted nowhere"
        place = folder / places[0].removeprefix("/")
        place.mkdir(parents=True)
        if "configMap" in volume:
            for name, text in settings[volume["configMap"]["name"]].items():
                (place / name).write_text(text)
        for source in volume.get("projected", {}).get("sources", []):
            for item in source["secret"]["items"]:
                (place / item["path"]).write_text(secrets[item["path"]])
        if "secret" in volume:
            make_certificate(place)
    fields = {"metadata.name": "tocsin-0", "metadata.namespace": "timers", "status.podIP": "10.0.0.7"}
    environment: dict[str, str] = {}
    for variable in container["env"]:
        value = variable.get("value") or fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        for name, earlier in environment.items():
            value = value.replace(f"$({name})", earlier)
        path = value.startswith("/") and not variable["name"].endswith("_DIR")
        environment[variable["name"]] = f"{folder}{value}" if path else value
    return environment


def make_certificate(folder: Path) -> None:
    """What cert-manager writes."""
    import trustme

    authority = trustme.CA()
    issued = authority.issue_cert("tocsin-node")
    issued.private_key_pem.write_to_path(folder / "tls.key")
    authority.cert_pem.write_to_path(folder / "ca.crt")
    for pem in issued.cert_chain_pems:
        pem.write_to_path(folder / "tls.crt", append=True)


@each("values", MATRIX.values())
def test_pods_are_restricted_and_end_in_time(chart: Chart, values: dict[str, Any]):
    objects = render(chart, values)
    pods = [item["spec"]["template"]["spec"] for item in objects if item["kind"] in ("StatefulSet", "Job")]
    for pod in pods:
        (container,) = pod["containers"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == 10001
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
    nodes = one(objects, "StatefulSet")["spec"]
    pod = nodes["template"]["spec"]
    leave, drain = values.get("leaveDelaySeconds", 5), values.get("drainTimeoutSeconds", 65)
    assert pod["terminationGracePeriodSeconds"] == drain + 2 * leave + 15
    probe = pod["containers"][0]["readinessProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] < leave
    assert probe["timeoutSeconds"] >= 5, "a busy node would lose its clients"
    assert nodes["podManagementPolicy"] == "Parallel"
    assert ("volumeClaimTemplates" in nodes) is not bool(values.get("secrets", {}).get("store"))


def test_selectors_find_the_nodes_alone(chart: Chart):
    objects = render(chart, MATRIX["everything"])
    nodes, migration = one(objects, "StatefulSet"), next(item for item in objects if item["kind"] == "Job")
    labels = nodes["spec"]["template"]["metadata"]["labels"]
    others = migration["spec"]["template"]["metadata"]["labels"]
    services = [item for item in objects if item["kind"] == "Service"]
    policy = one(objects, "NetworkPolicy")["spec"]
    selectors = [nodes["spec"]["selector"]["matchLabels"], policy["podSelector"]["matchLabels"]]
    selectors += [service["spec"]["selector"] for service in services]
    selectors += [one(objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"]]
    (peers,) = [rule["from"] for rule in policy["ingress"] if rule["ports"][0]["port"] == 8081]
    selectors += [peers[0]["podSelector"]["matchLabels"]]
    for selector in selectors:
        assert selector.items() <= labels.items()
        assert not selector.items() <= others.items()
    assert nodes["spec"]["serviceName"] in {service["metadata"]["name"] for service in services}
    monitored = one(objects, "ServiceMonitor")["spec"]["selector"]["matchLabels"]
    assert [s["metadata"]["name"] for s in services if monitored.items() <= s["metadata"]["labels"].items()] == [
        nodes["spec"]["serviceName"]
    ]


def test_alerts_are_those_of_prometheus(chart: Chart):
    rules = sorted((DEPLOY / "prometheus").glob("*.rules.yml"))
    texts = [path.read_text().replace('{job="tocsin"}', '{job="tocsin/timers/tocsin"}') for path in rules]
    groups = [group for text in texts for group in yaml.safe_load(text)["groups"]]
    assert one(render(chart, MATRIX["everything"]), "PrometheusRule")["spec"]["groups"] == groups


def test_two_releases_page_each_for_itself(chart: Chart, tmp_path: Path):
    """Staging and production in one Kubernetes, one of them under another name, with one Prometheus for both."""
    monitoring = {"serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}}
    files, jobs = [], []
    for namespace, name in (("staging", ""), ("prod", "timers")):
        values = {**ONE, "fullnameOverride": name, "monitoring": monitoring}
        objects = render(chart, values, "tocsin", namespace)
        (relabeling,) = one(objects, "ServiceMonitor")["spec"]["endpoints"][0]["relabelings"]
        assert relabeling["targetLabel"] == "job"
        jobs.append(relabeling["replacement"])
        file = tmp_path / f"{namespace}.rules.yml"
        file.write_text(yaml.safe_dump(one(objects, "PrometheusRule")["spec"]))
        files.append(str(file))
    staging, prod = jobs
    cases = [
        # The alert, and the series in that trouble.
        ("TocsinNothingFires", "0x40", "1x40", "1x40"),
        ("TocsinDown", "1x40", "1x40", "0x40"),
        ("TocsinAbsent", "1x4 stale _x35", "1x40", "1x40"),
    ]
    tests = []
    for alert, of_prod, of_staging, up in cases:
        firing = f'count by (job) (ALERTS{{alertname="{alert}",alertstate="firing"}})'
        tests.append(
            {
                "interval": "15s",
                "name": alert,
                "input_series": [
                    {"series": f'tocsin_dispatching{{job="{prod}",instance="p"}}', "values": of_prod},
                    {"series": f'tocsin_dispatching{{job="{staging}",instance="s"}}', "values": of_staging},
                    {"series": f'up{{job="{prod}",instance="p"}}', "values": up},
                    {"series": f'up{{job="{staging}",instance="s"}}', "values": "1x40"},
                ],
                "promql_expr_test": [
                    {
                        "expr": firing,
                        "eval_time": "8m",
                        "exp_samples": [{"labels": f'{{job="{prod}"}}', "value": 1}],
                    }
                ],
            }
        )
    file = tmp_path / "two.test.yml"
    file.write_text(json.dumps({"rule_files": files, "evaluation_interval": "15s", "tests": tests}))
    promtool("test", "rules", file)


def test_changed_settings_restart_the_pods(chart: Chart):
    def annotations(settings: str) -> dict[str, str]:
        found: dict[str, str] = one(render(chart, {**ONE, "settings": settings}), "StatefulSet")["spec"]["template"][
            "metadata"
        ]
        return found["annotations"]  # type: ignore[return-value]

    assert annotations('log_level = "info"') == annotations('log_level = "info"')
    assert annotations('log_level = "info"') != annotations('log_level = "debug"')


@each(
    "values, named",
    [
        ({"replicas": 2}, "secrets.store.name"),
        ({"replica": 2}, "replica"),
        ({"secrets": {"store": {"nam": "db"}}}, "nam"),
        ({"settings": "[cluster]\nleave_delay = '1s'\n"}, "leaveDelaySeconds"),
        ({"migrationJob": {"enabled": True}}, "migrationJob.store.name"),
        ({"migrationJob": {"enabled": True, "store": {"name": "owner"}}}, "secrets.store.name"),
        ({"httpRoute": {"enabled": True}}, "httpRoute.parentRefs"),
        ({"ingress": {"enabled": True}}, "ingress.host"),
        ({"leaveDelaySeconds": 1}, "leaveDelaySeconds"),
        ({"settings": "cluster.leave_delay = '1s'\n"}, "leaveDelaySeconds"),
        ({"settings": '"port" = 1\n'}, "service.port"),
        ({"settings": 'cluster = {leave_delay = "1s", port = 1}\n'}, r"\[cluster\]"),
        ({"secrets": {}}, "kubectl create secret"),
        ({"podLabels": {"app.kubernetes.io/component": "x"}}, "app.kubernetes.io/component"),
        ({"commonLabels": {"app.kubernetes.io/version": "x"}}, "app.kubernetes.io/version"),
        ({"commonLabels": {"team": "x"}, "podLabels": {"team": "y"}}, "podLabels: commonLabels has team"),
        ({"secrets": CLUSTER["secrets"], "persistence": {"existingClaim": "old"}}, "existingClaim"),
        ({"extraVolumeMounts": [{"name": "ca"}]}, "mountPath"),
    ],
)
def test_wrong_values_are_refused_by_name(chart: Chart, values: dict[str, Any], named: str):
    with pytest.raises(HelmError, match=named):
        render(chart, {**ONE, **values})


@pytest.mark.parametrize("values", [ONE, {**CLUSTER, "peerTls": {"secretName": "peers"}}], ids=["one", "cluster"])
def test_variables_of_the_chart_are_refused_in_extra_env(chart: Chart, values: dict[str, Any]):
    (container,) = one(render(chart, values), "StatefulSet")["spec"]["template"]["spec"]["containers"]
    for variable in container["env"]:
        with pytest.raises(HelmError, match=f"extraEnv: the chart sets {variable['name']} itself"):
            render(chart, {**values, "extraEnv": [{"name": variable["name"], "value": "x"}]})


def test_a_private_ca_can_be_mounted_and_named(chart: Chart):
    """In the nodes and in the migration's Job."""
    variable = {"name": "SSL_CERT_FILE", "value": "/etc/ca/ca.crt"}
    volume = {"name": "ca", "configMap": {"name": "private-ca"}}
    mount = {"name": "ca", "mountPath": "/etc/ca", "readOnly": True}
    job = {"enabled": True, "store": {"name": "owner"}}
    values = {**CLUSTER, "migrationJob": job, "extraVolumes": [volume], "extraVolumeMounts": [mount]}
    values["extraEnv"] = [variable]
    workloads = [item for item in render(chart, values) if item["kind"] in ("StatefulSet", "Job")]
    assert len(workloads) == 2
    for workload in workloads:
        pod = workload["spec"]["template"]["spec"]
        assert volume in pod["volumes"] and mount in pod["containers"][0]["volumeMounts"]
        assert variable in pod["containers"][0]["env"]
        kubernetes_validate.validate(workload, VERSIONS[-1], strict=True)


def test_a_part_of_the_placement_can_be_replaced(chart: Chart):
    def placement(**values: Any) -> tuple[set[str], list[Any]]:
        pod = one(render(chart, {**ONE, **values}), "StatefulSet")["spec"]["template"]["spec"]
        return set(pod["affinity"] or {}), pod.get("topologySpreadConstraints", [])

    anti, zones = placement()
    assert anti == {"podAntiAffinity"} and [zone["topologyKey"] for zone in zones] == ["topology.kubernetes.io/zone"]
    assert placement(affinity={"nodeAffinity": {}}) == ({"nodeAffinity", "podAntiAffinity"}, zones)
    assert placement(affinity={"podAntiAffinity": None}) == (set(), zones)
    assert placement(topologySpreadConstraints=[]) == (anti, [])
    own = [{"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}]
    assert placement(topologySpreadConstraints=own) == (anti, own)


def test_openshift_can_choose_the_user(chart: Chart):
    unset = {"runAsUser": None, "runAsGroup": None, "fsGroup": None}
    pod = one(render(chart, {**ONE, "podSecurityContext": unset}), "StatefulSet")["spec"]["template"]["spec"]
    assert not pod["securityContext"].keys() & unset.keys()
    assert pod["securityContext"]["runAsNonRoot"] is True


def test_an_existing_claim_is_used(chart: Chart):
    nodes = one(render(chart, {**ONE, "persistence": {"existingClaim": "old"}}), "StatefulSet")["spec"]
    assert "volumeClaimTemplates" not in nodes
    volumes = nodes["template"]["spec"]["volumes"]
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "old"}} in volumes


def test_annotations_and_labels_reach_their_objects(chart: Chart):
    role = {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/timers"}
    values = {
        **ONE,
        "serviceAccount": {"annotations": role},
        "commonLabels": {"cost-center": "7"},
        "extraContainers": [{"name": "proxy", "image": "proxy:1"}],
    }
    objects = render(chart, values)
    assert one(objects, "ServiceAccount")["metadata"]["annotations"] == role
    assert all(item["metadata"]["labels"]["cost-center"] == "7" for item in objects)
    nodes = one(objects, "StatefulSet")
    kubernetes_validate.validate(nodes, VERSIONS[-1], strict=True)
    pod = nodes["spec"]["template"]["spec"]
    assert [container["name"] for container in pod["containers"]] == ["tocsin", "proxy"]


def test_a_package_has_the_alerts(chart: Chart, tmp_path: Path):
    with Chart.load(chart.save(tmp_path)) as packaged:
        assert {entry["name"] for entry in packaged.files} >= {
            f"rules/{path.name}" for path in (DEPLOY / "prometheus").glob("*.rules.yml")
        }
