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

{{- /* The image of the manager. A released chart names it by digest, in an annotation of its
       own: helm upgrade --reuse-values keeps values, and with them would keep the manager of
       the release before. Whoever sets a repository, a tag or a digest gets those. */ -}}
{{- define "insitu.image" -}}
{{- $released := default "" (index .Chart.Annotations "insitu.dev/image") -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else if and (not .Values.image.tag) (hasPrefix (printf "%s@" .Values.image.repository) $released) -}}
{{ $released }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- /* Whether what belongs to the cluster and not to a namespace is installed: "true",
       or nothing. */ -}}
{{- define "insitu.clusterParts" -}}
{{- if eq .Values.rbac.scope "Cluster" -}}true{{- end -}}
{{- end -}}

{{- /* Whether the hold policies are installed: "true", or nothing. */ -}}
{{- define "insitu.holdPolicies" -}}
{{- if and .Values.holdPolicies.install (include "insitu.clusterParts" .) (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy") -}}true{{- end -}}
{{- end -}}

{{- /* Whether the policy that keeps drained pods out of service is installed: "true", or
       nothing. */ -}}
{{- define "insitu.drainPolicy" -}}
{{- if and .Values.drainPolicy.install (include "insitu.clusterParts" .) (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy") -}}true{{- end -}}
{{- end -}}

{{- /* The selector of the namespaces in which workloads are held; empty for all. */ -}}
{{- define "insitu.holdNamespaces" -}}
{{- $selector := deepCopy .Values.holdPolicies.namespaceSelector -}}
{{- with .Values.config.namespaces -}}
{{- $named := dict "key" "kubernetes.io/metadata.name" "operator" "In" "values" . -}}
{{- $selector = set $selector "matchExpressions" (append (default list $selector.matchExpressions) $named) -}}
{{- end -}}
{{- with $selector -}}{{- toYaml . -}}{{- end -}}
{{- end -}}

{{- /* The user names of the managers that policies know as such, as a list of CEL. */ -}}
{{- define "insitu.managerUsers" -}}
{{- $users := list -}}
{{- if .Values.manager.enabled -}}
{{- $users = append $users (printf "'system:serviceaccount:%s:%s'" .Release.Namespace (include "insitu.serviceAccountName" .)) -}}
{{- end -}}
{{- range .Values.manager.tenantAccounts -}}
{{- $users = append $users (printf "'system:serviceaccount:%s'" .) -}}
{{- end -}}
[{{ join ", " $users }}]
{{- end -}}

{{- /* The namespaces in which a manager of scope Namespace acts, as JSON. */ -}}
{{- define "insitu.namespaces" -}}
{{- default (list .Release.Namespace) .Values.config.namespaces | toJson -}}
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
{{- if eq .Values.rbac.scope "Namespace" -}}
{{- $own = merge (dict "scope" "Namespace" "namespaces" (include "insitu.namespaces" . | fromJsonArray)) $own -}}
{{- end -}}
{{- toYaml (merge $own .Values.config) -}}
{{- end -}}
