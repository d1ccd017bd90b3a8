{{/* Refuses values that do not fit together. The schema refuses those that are wrong by themselves. */}}
{{- define "duetime.check" -}}
{{- if not .Values.image.repository -}}
{{- fail "image.repository is missing: --set image.repository=REGISTRY/NAME names the image that your cluster shall pull. docs/how-to/run-in-containers.md builds one" -}}
{{- end -}}
{{- $settings := .Values.settings -}}
{{- $secrets := .Values.secretSettings -}}
{{- range $name, $from := $secrets -}}
{{- if hasKey $settings $name -}}
{{- fail (printf "%s is in settings and in secretSettings: leave one of them out" $name) -}}
{{- end -}}
{{- if not (or $from.secret $.Values.existingSecret) -}}
{{- fail (printf "existingSecret is missing: name a Secret that has the key %s, or set secretSettings.%s.secret" $name $name) -}}
{{- end -}}
{{- end -}}
{{- range $name := keys .Values.otel -}}
{{- if hasSuffix "_HEADERS" $name -}}
{{- fail (printf "otel.%s may hold a key: move it into a Secret and secretSettings" $name) -}}
{{- end -}}
{{- end -}}
{{- if and (hasKey .Values.otel "OTEL_TRACES_SAMPLER_ARG") (not (hasKey .Values.otel "OTEL_TRACES_SAMPLER")) -}}
{{- fail "otel.OTEL_TRACES_SAMPLER_ARG needs otel.OTEL_TRACES_SAMPLER, for example parentbased_traceidratio: all traces are sent otherwise" -}}
{{- end -}}
{{- $names := concat (keys $settings) (keys $secrets) -}}
{{- $database := or (has "DATABASE_URL" $names) (has "PG_HOST" $names) -}}
{{- if and (eq .Values.store.kind "sqlite") $database -}}
{{- fail "store.kind=sqlite keeps its timers in a volume: leave DATABASE_URL and PG_HOST out, or set store.kind=postgresql" -}}
{{- end -}}
{{- if and (eq .Values.store.kind "postgresql") (not $database) -}}
{{- fail "store.kind=postgresql needs secretSettings.DATABASE_URL, or settings.PG_HOST with secretSettings.PG_PASSWORD" -}}
{{- end -}}
{{- if gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas) -}}
{{- fail "autoscaling.minReplicas is more than autoscaling.maxReplicas" -}}
{{- end -}}
{{- $token := .Values.metrics.serviceMonitor.bearerToken -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.public) (not (and $token.secret $token.key)) -}}
{{- fail "metrics.serviceMonitor needs a key: set its bearerToken.secret and bearerToken.key, or metrics.public=true" -}}
{{- end -}}
{{- if eq (int .Values.metrics.port) 8080 -}}
{{- fail "metrics.port must not be 8080, which is the port of the API" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) -}}
{{- fail "ingress.enabled needs ingress.hosts" -}}
{{- end -}}
{{- end -}}
