# ms-swift on the CPU, for the demo, the tests and machines without an NPU: cpu on debian12.
# Rendered from Dockerfiles/stacks/cpu.yaml; change that, then `make render`.
# Python 3.11 is tested; 3.10 and 3.12 are resolved.
ARG BASE_IMAGE=docker.io/library/debian:bookworm-slim

FROM ${BASE_IMAGE} AS lock
COPY Dockerfiles/files/split_lock Dockerfiles/locks/cpu.txt /lock/
RUN bash /lock/split_lock /lock/cpu.txt /lock/layers build torch packages ms-swift

FROM ${BASE_IMAGE} AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
COPY Dockerfiles/files/install /opt/ascend-runner/install

# A mirror instead of the distribution's own servers, for example http://mirrors.example.org
ARG APT_MIRROR=
RUN if [ -n "$APT_MIRROR" ]; then \
      cp -a /etc/apt /etc/apt.own; \
      find /etc/apt -name '*.list' -o -name '*.sources' | xargs -r sed -Ei "s#https?://[^/ ]+/(ubuntu-ports|ubuntu|debian-security|debian)#$APT_MIRROR/\1#g"; \
    fi && \
    /opt/ascend-runner/install --run apt-get update -qq && \
    DEBIAN_FRONTEND=noninteractive /opt/ascend-runner/install --run apt-get install -y -qq --no-install-recommends \
      ca-certificates git python3 python3-venv && \
    if [ -d /etc/apt.own ]; then rm -rf /etc/apt && mv /etc/apt.own /etc/apt; fi && \
    rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH

# Package indexes: PyPI, and those that have what PyPI has not
ARG PIP_INDEX_URL=
ARG INDEX_PYTORCH=https://download.pytorch.org/whl/cpu
# Set to leave out what is not locked and cannot be had; the image then says what it lacks
ARG ALLOW_UNLOCKED=

COPY --from=lock /lock/layers/build.txt /lock/layers/build.unlocked.txt /opt/ascend-runner/lock/
RUN /opt/ascend-runner/install build

COPY --from=lock /lock/layers/torch.txt /lock/layers/torch.unlocked.txt /opt/ascend-runner/lock/
RUN /opt/ascend-runner/install torch

COPY --from=lock /lock/layers/packages.txt /lock/layers/packages.unlocked.txt /opt/ascend-runner/lock/
RUN /opt/ascend-runner/install packages

# A branch or tag of ms-swift instead of the locked release
ARG SWIFT_REF=
COPY --from=lock /lock/layers/ms-swift.txt /lock/layers/ms-swift.unlocked.txt /opt/ascend-runner/lock/
RUN if [ -n "$SWIFT_REF" ]; then \
      /opt/ascend-runner/install --run python3 -m pip install --no-deps "git+https://github.com/modelscope/ms-swift.git@$SWIFT_REF" && \
      echo "$SWIFT_REF" >/opt/ascend-runner/swift_ref; \
    else \
      /opt/ascend-runner/install ms-swift; \
    fi

# The supervisor of every attempt, and the environment of CANN for whatever way a process comes in
COPY runner/entry /opt/ascend-runner/entry
COPY runner/inside/capture_env.py runner/inside/verify_image.py /opt/ascend-runner/
COPY Dockerfiles/rendered/cpu-cpu.json /opt/ascend-runner/stack.json
RUN python3 /opt/ascend-runner/capture_env.py
ENV PATH=/opt/ascend-runner/bin:$PATH BASH_ENV=/opt/ascend-runner/env.sh

FROM build AS verify
RUN python3 /opt/ascend-runner/verify_image.py --write /opt/ascend-runner/verified.json

FROM build
COPY --from=verify /opt/ascend-runner/verified.json /opt/ascend-runner/verified.json
ARG BUILDER_COMMIT=unknown
ARG BASE_DIGEST=unknown
LABEL \
      org.opencontainers.image.title="ms-swift for cpu" \
      org.opencontainers.image.description="ms-swift on the CPU, for the demo, the tests and machines without an NPU" \
      org.opencontainers.image.version="4.6.0" \
      org.opencontainers.image.base.name="docker.io/library/debian:bookworm-slim" \
      org.ascend-runner.stack="cpu" \
      org.ascend-runner.generation="cpu" \
      org.ascend-runner.python="3.11" \
      org.ascend-runner.os="debian12" \
      org.ascend-runner.package.torch="2.13.0+cpu" \
      org.ascend-runner.package.ms-swift="4.6.0" \
      org.ascend-runner.package.transformers="5.19.0" \
      org.ascend-runner.package.trl="0.29.1" \
      org.ascend-runner.package.peft="0.20.0" \
      org.ascend-runner.package.accelerate="1.15.0" \
      org.ascend-runner.package.msgspec="0.23.0" \
      org.ascend-runner.package.wheel="0.47.0" \
      org.ascend-runner.lock.cpu="sha256:41bde9cbaf37cbf485f0e1ced79cfa7127770a981d07540a3b5d5432b0aeab97" \
      org.opencontainers.image.base.digest="$BASE_DIGEST" \
      org.ascend-runner.builder.commit="$BUILDER_COMMIT"
ENTRYPOINT ["/opt/ascend-runner/with-env"]
CMD ["bash"]
