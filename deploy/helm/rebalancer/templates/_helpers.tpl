{{- define "rebalancer.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "rebalancer.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "rebalancer.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "rebalancer.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "rebalancer.selector" -}}
app.kubernetes.io/name: {{ include "rebalancer.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "rebalancer.labels" -}}
{{ include "rebalancer.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: controller
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "rebalancer.account" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else if .Values.serviceAccount.create -}}
{{- include "rebalancer.fullname" . -}}
{{- else -}}
default
{{- end -}}
{{- end -}}

{{- define "rebalancer.priorityClass" -}}
{{- if .Values.priorityClass.name -}}
{{- .Values.priorityClass.name -}}
{{- else if .Values.priorityClass.create -}}
{{- printf "%s-%s" (include "rebalancer.fullname" .) .Release.Namespace | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "rebalancer.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "rebalancer.fullname" .) | trunc 55 | trimSuffix "-" -}}
{{- end -}}

{{- define "rebalancer.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* What nodes are to say of their load: none, own, crane or both. */}}
{{- define "rebalancer.annotateNodes" -}}
{{- default (dig "spec" "steering" "annotateNodes" "none" .Values.policy) .Values.annotateNodes -}}
{{- end -}}

{{/* What mode and policy patch: pods to mark candidates, nodes to taint or to annotate them. A list as JSON. */}}
{{- define "rebalancer.patched" -}}
{{- $taints := and (eq .Values.mode "evict") (dig "spec" "steering" "softTaint" true .Values.policy) -}}
{{- $patched := list -}}
{{- if ne .Values.mode "dry-run" -}}
{{- if or $taints (ne (include "rebalancer.annotateNodes" .) "none") }}{{- $patched = append $patched "nodes" }}{{- end -}}
{{- if eq .Values.mode "annotate" }}{{- $patched = append $patched "pods" }}{{- end -}}
{{- end -}}
{{- toJson $patched -}}
{{- end -}}

{{/* The settings file: where things are. */}}
{{- define "rebalancer.settings" -}}
{{- $url := required "prometheus.url is required: set it to the address of Prometheus, for example http://prometheus-operated.monitoring:9090" .Values.prometheus.url -}}
{{- $prometheus := dict "url" $url "timeout" .Values.prometheus.timeout -}}
{{- if .Values.prometheus.headers }}{{- $_ := set $prometheus "headers" .Values.prometheus.headers }}{{- end -}}
{{- if .Values.prometheus.parameters }}{{- $_ := set $prometheus "parameters" .Values.prometheus.parameters }}{{- end -}}
{{- if .Values.metrics.recordingRules.enabled }}{{- $_ := set $prometheus "recording_rules" true }}{{- end -}}
{{- range .Values.prometheus.secretKeys -}}
{{- $key := dict "token" "token_file" "basic-auth" "basic_auth_file" "ca.crt" "ca_file" -}}
{{- $_ := set $prometheus (get $key .) (printf "/etc/rebalancer/prometheus/%s" .) -}}
{{- end -}}
{{- $settings := dict "mode" .Values.mode "prometheus" $prometheus "log" (dict "level" .Values.log.level) -}}
{{- $_ := set $settings "leader_election" (dict "lease_name" (default (include "rebalancer.fullname" .) .Values.leaseName)) -}}
{{- if .Values.policy }}{{- $_ := set $settings "policy_file" "/etc/rebalancer/policy/policy.yaml" }}{{- end -}}
{{- if .Values.cranePolicy }}{{- $_ := set $settings "crane_policy_file" "/etc/rebalancer/policy/crane-policy.yaml" }}{{- end -}}
{{- if .Values.tenants }}{{- $_ := set $settings "tenants_file" "/etc/rebalancer/policy/tenants.yaml" }}{{- end -}}
{{- if .Values.extender.enabled -}}
{{- $extender := dict -}}
{{- if .Values.extender.tls.existingSecret }}{{- $_ := set $extender "cert_file" "/etc/rebalancer/tls/tls.crt" }}{{- $_ := set $extender "key_file" "/etc/rebalancer/tls/tls.key" }}{{- end -}}
{{- if .Values.extender.gpushare.enabled }}{{- $_ := set $extender "gpushare" (dict "enabled" true) }}{{- end -}}
{{- if $extender }}{{- $_ := set $settings "extender" $extender }}{{- end -}}
{{- end -}}
{{- toYaml (mergeOverwrite $settings (deepCopy .Values.settings)) -}}
{{- end -}}

{{/* The extender is a program of its own: neither the Service nor the budget of the controller may select its pods. */}}
{{- define "rebalancer.extender" -}}
{{- printf "%s-extender" (include "rebalancer.fullname" .) -}}
{{- end -}}

{{- define "rebalancer.extenderSelector" -}}
app.kubernetes.io/name: {{ include "rebalancer.name" . }}-extender
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "rebalancer.extenderLabels" -}}
{{ include "rebalancer.extenderSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: scheduler-extender
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* What leader election and the memory are called in the end: settings of the operator's win. */}}
{{- define "rebalancer.lease" -}}
{{- (include "rebalancer.settings" . | fromYaml).leader_election.lease_name -}}
{{- end -}}

{{/* "true" where placement hints are given: the policy wants them, and the mode evicts. */}}
{{- define "rebalancer.hints" -}}
{{- if and (eq .Values.mode "evict") (dig "spec" "steering" "hints" false .Values.policy) -}}true{{- end -}}
{{- end -}}

{{/* "true" where pods that wait are nominated for room that is taken back: the policy reclaims, and the mode evicts. */}}
{{- define "rebalancer.reclaims" -}}
{{- if and (eq .Values.mode "evict") (or (dig "spec" "reclaim" "enabled" false .Values.policy) (dig "spec" "defragment" "enabled" false .Values.policy)) -}}true{{- end -}}
{{- end -}}

{{/* The label value of pods that are gated for this controller. */}}
{{- define "rebalancer.gateLabel" -}}
{{- regexReplaceAll "[-_.]+$" (printf "%s.%s" .Release.Namespace (include "rebalancer.lease" .) | trunc 63) "" -}}
{{- end -}}

{{- define "rebalancer.state" -}}
{{- $settings := include "rebalancer.settings" . | fromYaml -}}
{{- default (printf "%s-state" $settings.leader_election.lease_name) $settings.state_name -}}
{{- end -}}
