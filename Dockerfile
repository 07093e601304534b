# Build the dependencies and the package apart, run them without a shell, as nobody in particular.
FROM python:3.13-slim-trixie AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY rebalancer ./rebalancer
# The asynchronous half of the Kubernetes client is never imported and is half of its size.
RUN pip install --target /app . && rm -rf /app/kubernetes/aio /app/bin

FROM gcr.io/distroless/python3-debian13:nonroot
LABEL org.opencontainers.image.title="rebalancer" \
      org.opencontainers.image.description="A load-aware rebalancer for Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /app /app
ENV PYTHONPATH=/app PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/usr/bin/python3", "-m", "rebalancer"]
CMD ["run"]
