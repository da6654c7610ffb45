{{- define "weir.name" -}}{{ printf "%s-%s" .Release.Name .Chart.Name | replace "weir-weir" "weir" | trunc 63 | trimSuffix "-" }}{{- end }}
{{- define "weir.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "weir.labels" -}}
{{ include "weir.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
{{- define "weir.secret" -}}{{ .Values.admin.existingSecret | default (include "weir.name" .) }}{{- end }}

{{- /* The maximum number of pods at a time, except during an update. */}}
{{- define "weir.pods" -}}
{{- if .Values.persistence.size }}1{{ else if .Values.autoscaling.enabled }}{{ .Values.autoscaling.max }}{{ else }}{{ .Values.replicas }}{{ end }}
{{- end }}

{{- /* weir.yaml: the given values, and those that the chart sets. */}}
{{- define "weir.config" -}}
{{- $pods := include "weir.pods" . | int }}
{{- if and (gt $pods 1) (hasPrefix "memory:" (.Values.config.store | default "memory:")) }}
{{- fail (printf "config.store is memory:, which each of up to %d pods would count by itself, granting every limit %d times. Name a store that they share (redis://, postgres://, mysql://), or have one pod: autoscaling.enabled=false and replicas=1, or persistence.size" $pods $pods) }}
{{- end }}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.min) (int .Values.autoscaling.max)) }}
{{- fail "autoscaling.min is above autoscaling.max" }}
{{- end }}
{{- if dig "tls" "client_ca" "" .Values.config }}
{{- fail "config.tls.client_ca would refuse the probes of Kubernetes, which show no certificate, so no pod would ever be ready. Leave it out, and let a mesh or a network policy say who may ask" }}
{{- end }}
{{- $listen := dict "http" "0.0.0.0:8080" "grpc" "0.0.0.0:8081" "resp" (ternary "0.0.0.0:6380" "off" .Values.resp) }}
{{- /* Rounded down, so that all pods together do not exceed the limit. */}}
{{- $share := divf (max 1 (div 10000 (max 1 $pods))) 10000 }}
{{- mergeOverwrite (dict "local_share" $share) .Values.config (dict "listen" $listen "policies" (list "policies.yaml")) | toYaml }}
{{- end }}
