{{- define "insitu.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "insitu.managerName" -}}
{{ include "insitu.fullname" . }}-manager
{{- end -}}

{{- define "insitu.serviceAccountName" -}}
{{- if .Values.serviceAccount.name -}}
{{ .Values.serviceAccount.name }}
{{- else if .Values.serviceAccount.create -}}
{{ include "insitu.managerName" . }}
{{- else -}}
default
{{- end -}}
{{- end -}}

{{- define "insitu.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: manager
{{- end -}}

{{- define "insitu.labels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "insitu.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- /* The configuration file: config, and what the pod itself decides. */ -}}
{{- define "insitu.config" -}}
{{- $metrics := dict "bindAddress" "0" -}}
{{- if .Values.metrics.enabled -}}
{{- $metrics = dict "bindAddress" (printf ":%v" .Values.metrics.port) "secure" .Values.metrics.secure -}}
{{- if .Values.metrics.certSecret -}}
{{- $_ := set $metrics "certDir" "/etc/insitu-metrics-certificate" -}}
{{- end -}}
{{- end -}}
{{- $own := dict
  "apiVersion" "config.insitu.dev/v1alpha1"
  "kind" "InsituConfiguration"
  "health" (dict "bindAddress" (printf ":%v" .Values.health.port))
  "metrics" $metrics -}}
{{- toYaml (merge $own .Values.config) -}}
{{- end -}}
