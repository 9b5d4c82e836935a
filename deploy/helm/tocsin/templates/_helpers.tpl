{{- define "tocsin.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "tocsin.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "tocsin.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "tocsin.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "tocsin.selector" -}}
app.kubernetes.io/name: {{ include "tocsin.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Of the nodes alone: the migration's pod has another component. */}}
{{- define "tocsin.nodeSelector" -}}
{{ include "tocsin.selector" . }}
app.kubernetes.io/component: node
{{- end }}

{{- define "tocsin.labels" -}}
{{ include "tocsin.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Prometheus' job of this release, another one for each release in each namespace. */}}
{{- define "tocsin.job" -}}
tocsin/{{ .Release.Namespace }}/{{ .Release.Name }}
{{- end }}

{{- define "tocsin.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}
{{- end }}

{{/* Seconds that Kubernetes waits for a stopping node: it leaves (twice the delay), drains, and ends. */}}
{{- define "tocsin.grace" -}}
{{ add .Values.drainTimeoutSeconds (mul 2 .Values.leaveDelaySeconds) 15 }}
{{- end }}

{{/* Fails for values that contradict one another. */}}
{{- define "tocsin.check" -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.secrets.store.name) }}
{{- fail "replicas: more than one node requires a database server; name a Secret with its URL in secrets.store.name" }}
{{- end }}
{{- if not .Values.secrets.adminKey.name }}
{{- fail "secrets.adminKey.name: name a Secret with the first admin key; without a key the nodes refuse to start. Create it by: kubectl create secret generic tocsin --from-literal=admin-key=$(openssl rand -hex 32)" }}
{{- end }}
{{- $monitoring := .Values.monitoring }}
{{- $own := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "helm.sh/chart" }}
{{- range $value, $labels := dict "commonLabels" .Values.commonLabels "podLabels" .Values.podLabels "monitoring.serviceMonitor.labels" $monitoring.serviceMonitor.labels "monitoring.prometheusRule.labels" $monitoring.prometheusRule.labels "monitoring.dashboards.labels" $monitoring.dashboards.labels }}
{{- range $label, $_ := $labels }}
{{- if has $label $own }}
{{- fail (printf "%s: the chart sets %s itself; choose another label" $value $label) }}
{{- else if and (ne $value "commonLabels") (hasKey $.Values.commonLabels $label) }}
{{- fail (printf "%s: commonLabels has %s, too; set it in one of them" $value $label) }}
{{- end }}
{{- end }}
{{- end }}
{{- $fromSecrets := include "tocsin.secretVariables" .Values.secrets }}
{{- range .Values.extraEnv }}
{{- if or (regexMatch "^(POD_NAME|POD_NAMESPACE|TOCSIN_(CONFIG|HOST|PORT|NODE_NAME|ADVERTISE|ADVERTISE_API|DATA_DIR|DRAIN_TIMEOUT|WORKERS|CLUSTER_PORT|CLUSTER_LEAVE_DELAY|CLUSTER_TLS_.*))$" .name) (contains (printf "{name: %s," .name) $fromSecrets) }}
{{- fail (printf "extraEnv: the chart sets %s itself; see secrets, peerTls, leaveDelaySeconds, drainTimeoutSeconds and service.port" .name) }}
{{- end }}
{{- end }}
{{- if and .Values.persistence.existingClaim .Values.secrets.store.name }}
{{- fail "persistence.existingClaim: the volume is SQLite's; it is not used with secrets.store.name" }}
{{- end }}
{{- if and .Values.migrationJob.enabled (not .Values.migrationJob.store.name) }}
{{- fail "migrationJob.store.name: name an existing Secret with the database URL of the tables' owner" }}
{{- end }}
{{- if and .Values.migrationJob.enabled (not .Values.secrets.store.name) }}
{{- fail "migrationJob.enabled: SQLite needs no Job, the node migrates its file; set secrets.store.name or disable it" }}
{{- end }}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) }}
{{- fail "httpRoute.parentRefs: name the Gateway, such as [{name: public, namespace: infra}]" }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}
{{- fail "ingress.host: name the host, such as tocsin.example" }}
{{- end }}
{{- if regexMatch "(?m)^\\s*[\"']?cluster[\"']?\\s*=" .Values.settings }}
{{- fail "settings: write cluster as a table, [cluster], so that the chart finds what it sets itself" }}
{{- end }}
{{- $own := regexFind "(?m)^\\s*[\"']?(cluster[\"']?\\s*\\.\\s*[\"']?)?(host|port|node_name|advertise|advertise_api|data_dir|drain_timeout|leave_delay|workers)[\"']?\\s*=" .Values.settings }}
{{- if $own }}
{{- fail (printf "settings: the chart sets %s itself; see drainTimeoutSeconds, leaveDelaySeconds and service.port" (trimSuffix "=" (trim $own) | trim)) }}
{{- end }}
{{- end }}

{{- define "tocsin.podSecurity" -}}
{{- $default := dict "runAsNonRoot" true "runAsUser" 10001 "runAsGroup" 10001 "fsGroup" 10001 "fsGroupChangePolicy" "OnRootMismatch" "seccompProfile" (dict "type" "RuntimeDefault") }}
{{- range $field, $value := merge (deepCopy .Values.podSecurityContext) $default }}
{{- if not (and (hasKey $.Values.podSecurityContext $field) (kindIs "invalid" (get $.Values.podSecurityContext $field))) }}
{{ $field }}: {{ $value | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{/* Of the Secrets that are named, with what is in them where Helm may read it (not in `helm template`). */}}
{{- define "tocsin.secretsChecksum" -}}
{{- $found := dict }}
{{- range $secret := .Values.secrets }}
{{- if $secret.name }}
{{- $stored := lookup "v1" "Secret" $.Release.Namespace $secret.name | default dict }}
{{- $_ := set $found (printf "%s/%s" $secret.name $secret.key) (dig "data" $secret.key "" $stored) }}
{{- end }}
{{- end }}
{{- $found | toJson | sha256sum }}
{{- end }}

{{- define "tocsin.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* The secrets that are set, as files of one volume: (dict "secrets" …). The names are those of the variables. */}}
{{- define "tocsin.secretSources" -}}
{{- range $name, $secret := . }}
{{- if $secret.name }}
- secret:
    name: {{ $secret.name }}
    items: [{key: {{ $secret.key }}, path: {{ $name }}}]
{{- end }}
{{- end }}
{{- end }}

{{- define "tocsin.secretVariables" -}}
{{- $variables := dict "adminKey" "TOCSIN_ADMIN_KEY_FILE" "store" "TOCSIN_STORE_FILE" "agentDatabase" "TOCSIN_AGENT_DATABASE_FILE" "broker" "TOCSIN_BROKER_FILE" "clusterSecret" "TOCSIN_CLUSTER_SECRET_FILE" "clusterSecretFormer" "TOCSIN_CLUSTER_SECRET_FORMER_FILE" "secretsKey" "TOCSIN_SECRETS_KEY_FILE" }}
{{- range $name, $secret := . }}
{{- if $secret.name }}
- {name: {{ get $variables $name }}, value: /run/secrets/tocsin/{{ $name }}}
{{- end }}
{{- end }}
{{- end }}
