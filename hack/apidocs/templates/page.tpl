{{- define "gvList" -}}
# API reference

<!-- Generated from the types in apis/ by make generate. Do not edit. -->

Every field of the API, with what it does, its default and what is accepted. `kubectl explain` says the same of the version that is installed:
`kubectl explain statefulsets.apps.kruise.io.spec.updateStrategy`.

`apps.kruise.io/v1alpha1` has the same kinds and the same fields: what is written through one version is read through the other. Labels and
annotations, also those of workloads of Kubernetes, are on the pages of their features: [native.md](native.md), [lifecycle.md](lifecycle.md), [restarts.md](restarts.md).
{{ range . }}
{{ template "gvDetails" . }}
{{- end }}
{{- end -}}

{{- define "gvDetails" -}}
{{- $gv := . }}
## {{ .GroupVersionString }}

{{ regexReplaceAll "(?m)^# " .Doc "### " }}
{{ range .SortedKinds }}
- [{{ . }}](#{{ lower . }})
{{- end }}
{{ range .SortedTypes }}{{ if .GVK }}{{ template "type" . }}{{ end }}{{ end }}
{{- range .SortedTypes }}{{ if not .GVK }}{{ template "type" . }}{{ end }}{{ end }}
{{- end -}}
