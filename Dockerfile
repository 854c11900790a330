# The image of the gateway and of workers. Build it with `docker build --tag larkspur .`;
# compose.yaml does so by itself. docs/operating.md says how to run it.

FROM node:24-bookworm-slim AS page
WORKDIR /src/web
COPY web/package.json web/package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier
COPY web ./
COPY internal/i18n ../internal/i18n
RUN npm run build -- --logLevel=warn

FROM python:3.13-slim-bookworm AS builder
COPY --from=ghcr.io/astral-sh/uv:0.13.9 /uv /usr/local/bin/uv
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=/opt/larkspur
WORKDIR /src
# The dependencies have a layer of their own, which a change of the sources does not rebuild.
COPY pyproject.toml uv.lock ./
RUN uv sync --frozen --no-dev --all-extras --no-install-project
COPY LICENSE README.md ./
COPY cmd cmd
COPY configs configs
COPY internal internal
COPY --from=page /src/internal/channels/web/dist internal/channels/web/dist
# The licences of the Python packages become a file of the image; those of the page are in the package itself.
RUN uv sync --frozen --no-dev --all-extras --no-editable \
  && UV_PROJECT_ENVIRONMENT=notices uv sync --frozen --only-group notices \
  && notices/bin/pip-licenses --python="$UV_PROJECT_ENVIRONMENT/bin/python" --format=plain-vertical \
  --with-license-file --no-license-path --output-file="$UV_PROJECT_ENVIRONMENT/THIRD-PARTY-NOTICES.txt"

FROM python:3.13-slim-bookworm
# Debian removes old versions from its index: pinned ones could not be installed for long.
# hadolint ignore=DL3008
RUN apt-get update \
  && apt-get install --yes --no-install-recommends bubblewrap ca-certificates git ripgrep \
  && rm -rf /var/lib/apt/lists/* \
  && groupadd --gid 10001 larkspur \
  && useradd --uid 10001 --gid larkspur --home-dir /data --no-create-home --shell /usr/sbin/nologin larkspur \
  && install --directory --owner=larkspur --group=larkspur --mode=0700 /data
COPY --from=builder /opt/larkspur /opt/larkspur
COPY configs/deploy/check_health.py /usr/local/lib/larkspur/check_health.py
ENV PATH=/opt/larkspur/bin:$PATH HOME=/data LARKSPUR_HOME=/data
USER 10001:10001
WORKDIR /data
VOLUME ["/data"]
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
  CMD ["python", "/usr/local/lib/larkspur/check_health.py"]
ENTRYPOINT ["larkspur"]
CMD ["serve"]
