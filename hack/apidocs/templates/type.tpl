{{- define "type" -}}
{{- if and (markdownShouldRenderType .) (or .Members .EnumValues) }}
### {{ .Name }}

{{ .Doc }}
{{- /* Others are what an annotation holds, which have no section. */ -}}
{{- $users := list -}}
{{- range .SortedReferences -}}
{{- if and (markdownShouldRenderType .) (or .GVK .References) .Members -}}
{{- $users = append $users (markdownRenderTypeLink .) -}}
{{- end -}}
{{- end -}}
{{- if $users }}

In: {{ join ", " $users }}.
{{- end }}
{{ if .Members }}
| Field | Type | What it is | Default | Accepted |
|---|---|---|---|---|
{{- if .GVK }}
| `apiVersion` | string | `{{ .GVK.Group }}/{{ .GVK.Version }}` | | |
| `kind` | string | `{{ .GVK.Kind }}` | | |
{{- end }}
{{- range .Members }}
| `{{ .Name }}` | {{ markdownRenderType .Type }} | {{ template "what" . }} | {{ with .Default }}{{ printf "%v" . | replace "{" "" | replace "}" "" | trim }}{{ end }} | {{ template "accepted" . }} |
{{- end }}
{{ end }}
{{- if .EnumValues }}
| Value | What it means |
|---|---|
{{- range .EnumValues }}
| `{{ .Name }}` | {{ markdownRenderFieldDoc .Doc | trimSuffix "<br />" }} |
{{- end }}
{{ end }}
{{- end -}}
{{- end -}}

{{- define "what" -}}
{{- if eq .Name "metadata" -}}
The metadata that every object has.
{{- else -}}
{{ markdownRenderFieldDoc .Doc | replace "<br />" "\x00" | replace "<" "&lt;" | replace "\x00" "<br />" }}
{{- end -}}
{{- end -}}

{{- /* Markers of the schema are read by machines; people need these. */ -}}
{{- define "accepted" -}}
{{- $rules := list -}}
{{- range .Validation -}}
{{- if hasPrefix "Required" . -}}
{{- $rules = append $rules "required" -}}
{{- else if not (regexMatch "^(Optional|XIntOrString|XPreserve|Schemaless|Type|XValidation)" .) -}}
{{- $rules = append $rules (. | replace "{" "\\{" | replace "}" "\\}" | replace "|" "\\|") -}}
{{- end -}}
{{- end -}}
{{- join "<br />" $rules -}}
{{- end -}}
