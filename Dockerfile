# The image of Duetime. Everything in it comes from requirements/runtime.txt, checked by hash.
#
#   docker build -t duetime .
#
# The tag names the base image for readers. With a digest, the tag no longer decides:
#   --build-arg PYTHON_DIGEST=sha256:...
# The release workflow looks the digest up and passes it, so that a published image can be built again.
ARG PYTHON_TAG=3.13-slim-bookworm
ARG PYTHON_DIGEST=
ARG PYTHON_IMAGE=python:${PYTHON_TAG}${PYTHON_DIGEST:+@}${PYTHON_DIGEST}

FROM ${PYTHON_IMAGE} AS builder
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1
WORKDIR /build
COPY requirements/runtime.txt requirements/
# nkeys is published as source only; it is pure Python.
RUN python -m pip wheel --require-hashes --only-binary :all: --no-binary nkeys \
  -w /wheels -r requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
# From here on, pip sees only wheels whose hashes were right. The lock also holds the build backend,
# which pip installs for the build alone; the environment of the service has neither it nor pip.
ENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels
ARG EXTRAS=[otel]
# hadolint ignore=DL3013
RUN python -m pip wheel --no-deps -w /wheels . \
  && python -m venv --without-pip /opt/duetime \
  && python -m pip --python /opt/duetime/bin/python install "duetime${EXTRAS}"

FROM ${PYTHON_IMAGE}
ARG VERSION=
ARG REVISION=
ARG SOURCE=
LABEL org.opencontainers.image.title="Duetime" \
      org.opencontainers.image.description="A durable timer and callback service" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Volumes start as a copy of /data, so that they belong to the service's user.
RUN python -m pip uninstall --yes --quiet --root-user-action=ignore pip \
  && install -d -m 0700 -o 10001 -g 10001 /data
COPY --from=builder /opt/duetime /opt/duetime
ENV PATH=/opt/duetime/bin:${PATH} \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    TIMER_DB_PATH=/data/duetime.db \
    LOG_FORMAT=json
USER 10001:10001
WORKDIR /data
VOLUME ["/data"]
EXPOSE 8080
STOPSIGNAL SIGTERM
# Orchestrators restart what is unhealthy, so this asks /livez: a restart does not bring a database
# back, which /readyz and /healthz would complain about.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["python", "-c", "import http.client, os, sys; door = http.client.HTTPConnection('127.0.0.1', int(os.environ.get('PORT') or 8080), timeout=4); door.request('GET', '/livez'); sys.exit(door.getresponse().status != 200)"]
ENTRYPOINT ["duetime"]
CMD ["serve"]
