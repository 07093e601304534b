# Build the dependencies and the package apart, run them without a shell, as nobody in particular.
# For a release, pin both images by digest: --build-arg BUILD_IMAGE=...@sha256:... --build-arg RUN_IMAGE=...@sha256:...
ARG BUILD_IMAGE=python:3.13-slim-trixie
ARG RUN_IMAGE=gcr.io/distroless/python3-debian13:nonroot

FROM ${BUILD_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /src
# Every dependency is locked with its hash; `make lock` renews the file.
COPY deploy/requirements.lock ./
RUN pip install --require-hashes --target /app -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY rebalancer ./rebalancer
RUN pip install --no-deps --target /package . \
 && cp -r /package/rebalancer /package/rebalancer-*.dist-info /app/ \
 # The asynchronous half of the Kubernetes client is never imported and is half of its size.
 && rm -rf /app/kubernetes/aio /app/bin \
 && find /app -name tests -type d -prune -exec rm -rf {} +

FROM ${RUN_IMAGE}
LABEL org.opencontainers.image.title="rebalancer" \
      org.opencontainers.image.description="A load-aware rebalancer for Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /app /app
ENV PYTHONPATH=/app PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/usr/bin/python3", "-m", "rebalancer"]
CMD ["run"]
