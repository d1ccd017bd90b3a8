{{/* A value as Duetime reads it. YAML makes booleans of on and off, and floats of large numbers. */}}
{{- define "duetime.text" -}}
{{- if kindIs "bool" . -}}
{{- . | ternary "on" "off" -}}
{{- else if and (kindIs "float64" .) (eq . (floor .)) -}}
{{- printf "%.0f" . -}}
{{- else -}}
{{- toString . -}}
{{- end -}}
{{- end -}}

{{/* The environment of every container: settings, and references to secret ones. */}}
{{- define "duetime.environment" -}}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ include "duetime.text" $value | quote }}
{{- end }}
{{- range $name, $value := .Values.otel }}
- name: {{ $name }}
  {{- /* OpenTelemetry knows true and false, but neither on nor off. */}}
  value: {{ kindIs "bool" $value | ternary (toString $value) (include "duetime.text" $value) | quote }}
{{- end }}
{{- range $name, $from := .Values.secretSettings }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ default $.Values.existingSecret $from.secret }}
      key: {{ default $name $from.key }}
{{- end }}
{{- end -}}

{{- define "duetime.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "duetime.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* The pod of the StatefulSet and of the Deployment. */}}
{{- define "duetime.pod" -}}
metadata:
  labels:
    {{- include "duetime.labels" . | nindent 4 }}
    app.kubernetes.io/component: server
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "duetime.serviceAccountName" . }}
  automountServiceAccountToken: false
  # Services named pg or nats would set PG_PORT or NATS_PORT, which are settings.
  enableServiceLinks: false
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  # It drains, then requests have the grace to end, then callbacks; some seconds are to spare.
  terminationGracePeriodSeconds: {{ add .Values.drainSeconds (mul 2 .Values.shutdownGraceSeconds) 10 }}
  securityContext:
    {{- include "duetime.podSecurityContext" . | nindent 4 }}
  containers:
    - name: duetime
      image: {{ include "duetime.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve]
      env:
        - name: HOST
          value: "0.0.0.0"
        - name: PORT
          value: "8080"
        - name: METRICS_PORT
          value: {{ .Values.metrics.port | quote }}
        - name: METRICS_PUBLIC
          value: {{ .Values.metrics.public | quote }}
        - name: WORKERS
          value: {{ .Values.workers | quote }}
        - name: DRAIN_SECONDS
          value: {{ .Values.drainSeconds | quote }}
        - name: SHUTDOWN_GRACE_SECONDS
          value: {{ .Values.shutdownGraceSeconds | quote }}
        {{- if eq .Values.store.kind "sqlite" }}
        - name: TIMER_DB_PATH
          value: /data/duetime.db
        {{- end }}
        {{- include "duetime.environment" . | trim | nindent 8 }}
      ports:
        - name: http
          containerPort: 8080
        - name: metrics
          containerPort: {{ .Values.metrics.port }}
      # Probes are answered from the first second on, also while the database is away. SQLite's
      # schema is brought up to date meanwhile, which may take minutes.
      startupProbe:
        httpGet:
          path: /livez
          port: http
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 300
      livenessProbe:
        httpGet:
          path: /livez
          port: http
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      # No while it drains or cannot reach its database.
      readinessProbe:
        httpGet:
          path: /readyz
          port: http
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- include "duetime.securityContext" . | nindent 8 }}
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        {{- if eq .Values.store.kind "sqlite" }}
        - name: data
          mountPath: /data
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir:
        medium: Memory
        sizeLimit: 64Mi
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if eq .Values.store.kind "postgresql" }}
  topologySpreadConstraints:
    {{- if .Values.topologySpreadConstraints }}
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - topologyKey: {{ $key }}
      maxSkew: 1
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "duetime.serverLabels" $ | nindent 10 }}
    {{- end }}
    {{- end }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
