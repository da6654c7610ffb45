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
