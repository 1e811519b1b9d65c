# Training only, CANN 9.1.0 with ms-swift 4.6 and neither vLLM nor Megatron: A3 on ubuntu22.04.
# Rendered from Dockerfiles/stacks/train-cann9.1.yaml; change that, then `make render`.
# Rendered and resolved, not run on hardware.
ARG BASE_IMAGE=quay.io/ascend/cann:9.1.0-a3-ubuntu22.04-py3.12

FROM ${BASE_IMAGE} AS lock
COPY Dockerfiles/files/split_lock Dockerfiles/locks/train-cann9.1-aarch64.txt Dockerfiles/locks/train-cann9.1-x86_64.txt /lock/
RUN bash /lock/split_lock /lock/train-cann9.1-$(uname -m).txt /lock/layers build torch packages deepspeed-packages ms-swift

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
      ca-certificates curl git gcc g++ make cmake numactl libnuma-dev libgl1 libglib2.0-0 libsndfile1 libjemalloc2 && \
    if [ -d /etc/apt.own ]; then rm -rf /etc/apt && mv /etc/apt.own /etc/apt; fi && \
    rm -rf /var/lib/apt/lists/*

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

COPY --from=lock /lock/layers/deepspeed-packages.txt /lock/layers/deepspeed-packages.unlocked.txt /opt/ascend-runner/lock/
RUN /opt/ascend-runner/install deepspeed-packages

# Which chip kernels are compiled for
ARG SOC_VERSION=ascend910_9391
ENV SOC_VERSION=$SOC_VERSION

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
COPY Dockerfiles/rendered/train-cann9.1-A3.json /opt/ascend-runner/stack.json
RUN python3 /opt/ascend-runner/capture_env.py
ENV PATH=/opt/ascend-runner/bin:$PATH BASH_ENV=/opt/ascend-runner/env.sh

# A user who is not root; `docker run --user ascend --group-add "$(stat -c %g /dev/davinci0)"` opens the devices
ARG DEVICE_GID=1000
RUN { getent group $DEVICE_GID || groupadd -g $DEVICE_GID HwHiAiUser; } && \
    { getent passwd 1000 || useradd -m -u 1000 -g $DEVICE_GID -s /bin/bash ascend; } >/dev/null && \
    mkdir -p /workspace && chmod 1777 /workspace
WORKDIR /workspace

FROM build AS verify
RUN python3 /opt/ascend-runner/verify_image.py --write /opt/ascend-runner/verified.json

FROM build
COPY --from=verify /opt/ascend-runner/verified.json /opt/ascend-runner/verified.json
ARG BUILDER_COMMIT=unknown
ARG BASE_DIGEST=unknown
LABEL \
      org.opencontainers.image.title="ms-swift for A3" \
      org.opencontainers.image.description="Training only, CANN 9.1.0 with ms-swift 4.6 and neither vLLM nor Megatron" \
      org.opencontainers.image.version="4.6.0" \
      org.opencontainers.image.base.name="quay.io/ascend/cann:9.1.0-a3-ubuntu22.04-py3.12" \
      org.ascend-runner.stack="train-cann9.1" \
      org.ascend-runner.generation="A3" \
      org.ascend-runner.soc="ascend910_9391" \
      org.ascend-runner.cann="9.1.0" \
      org.ascend-runner.python="3.12" \
      org.ascend-runner.os="ubuntu22.04" \
      org.ascend-runner.driver.minimum="25.2" \
      org.ascend-runner.driver.paired="26.0.RC1" \
      org.ascend-runner.package.torch="2.10.0" \
      org.ascend-runner.package.torchvision="0.25.0" \
      org.ascend-runner.package.torchaudio="2.10.0" \
      org.ascend-runner.package.torch-npu="2.10.0.post4" \
      org.ascend-runner.package.ms-swift="4.6.0" \
      org.ascend-runner.package.transformers="5.19.0" \
      org.ascend-runner.package.trl="0.29.1" \
      org.ascend-runner.package.peft="0.20.0" \
      org.ascend-runner.package.accelerate="1.15.0" \
      org.ascend-runner.package.deepspeed="0.19.8" \
      org.ascend-runner.package.msgspec="0.23.0" \
      org.ascend-runner.package.wheel="0.47.0" \
      org.ascend-runner.lock.train-cann9.1-aarch64="sha256:e4f32d7520b6c65cd211063df96d02d5d422d0180357551d58e739dacb93c78c" \
      org.ascend-runner.lock.train-cann9.1-x86_64="sha256:14a80c0a909a8fc97f65372fffe3e1391105595d49e593ea095ba53cea088532" \
      org.opencontainers.image.base.digest="$BASE_DIGEST" \
      org.ascend-runner.builder.commit="$BUILDER_COMMIT"
ENTRYPOINT ["/opt/ascend-runner/with-env"]
CMD ["bash"]
