# The older generation, CANN 8.5.0 with vLLM-Ascend 0.14.0rc1 and ms-swift 4.2: A2 on ubuntu22.04.
# Rendered from Dockerfiles/stacks/swift-4.2-cann8.5.yaml; change that, then `make render`.
# Rendered and resolved, not run on hardware.
ARG BASE_IMAGE=quay.io/ascend/cann:8.5.0-910b-ubuntu22.04-py3.11

FROM ${BASE_IMAGE} AS lock
COPY Dockerfiles/files/split_lock Dockerfiles/locks/swift-4.2-cann8.5-aarch64.txt Dockerfiles/locks/swift-4.2-cann8.5-x86_64.txt /lock/
RUN bash /lock/split_lock /lock/swift-4.2-cann8.5-$(uname -m).txt /lock/layers build torch packages vllm-packages megatron-packages deepspeed-packages eval-packages vllm vllm-ascend ms-swift triton-ascend

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
      ca-certificates curl git gcc g++ make cmake numactl libnuma-dev libgl1 libglib2.0-0 libsndfile1 libjemalloc2 clang-15 && \
    update-alternatives --install /usr/bin/clang clang /usr/bin/clang-15 20 && \
    update-alternatives --install /usr/bin/clang++ clang++ /usr/bin/clang++-15 20 && \
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

COPY --from=lock /lock/layers/vllm-packages.txt /lock/layers/vllm-packages.unlocked.txt /opt/ascend-runner/lock/
RUN /opt/ascend-runner/install vllm-packages

COPY --from=lock /lock/layers/megatron-packages.txt /lock/layers/megatron-packages.unlocked.txt /opt/ascend-runner/lock/
RUN /opt/ascend-runner/install megatron-packages

COPY --from=lock /lock/layers/deepspeed-packages.txt /lock/layers/deepspeed-packages.unlocked.txt /opt/ascend-runner/lock/
RUN /opt/ascend-runner/install deepspeed-packages

COPY --from=lock /lock/layers/eval-packages.txt /lock/layers/eval-packages.unlocked.txt /opt/ascend-runner/lock/
RUN /opt/ascend-runner/install eval-packages

# vLLM for no device: its own wheels are for CUDA, and pip takes this build only by the name it is locked by
COPY --from=lock /lock/layers/vllm.txt /lock/layers/vllm.unlocked.txt /opt/ascend-runner/lock/
RUN VLLM_TARGET_DEVICE=empty VLLM_VERSION_OVERRIDE=0.14.0 /opt/ascend-runner/install vllm

# Which chip kernels are compiled for
ARG SOC_VERSION=ascend910b1
ENV SOC_VERSION=$SOC_VERSION
# 0 takes vLLM-Ascend without its own kernels, from the index: for checks on machines without CANN
ARG COMPILE_CUSTOM_KERNELS=1
COPY --from=lock /lock/layers/vllm-ascend.txt /opt/ascend-runner/lock/
RUN if [ "$COMPILE_CUSTOM_KERNELS" = 0 ]; then \
      COMPILE_CUSTOM_KERNELS=0 /opt/ascend-runner/install vllm-ascend --no-binary vllm-ascend; \
    else \
      set +u; source /usr/local/Ascend/ascend-toolkit/set_env.sh; source /usr/local/Ascend/nnal/atb/set_env.sh; \
      export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$ASCEND_TOOLKIT_HOME/$(uname -m)-linux/devlib; \
      /opt/ascend-runner/install --git https://github.com/vllm-project/vllm-ascend.git 52d4acfa51fb868823d1070b81cbd2d97e9e4696 /opt/vllm-ascend && \
      VLLM_ASCEND_VERSION=0.14.0rc1 SETUPTOOLS_SCM_PRETEND_VERSION=0.14.0rc1 \
      /opt/ascend-runner/install --run python3 -m pip install --no-deps --no-build-isolation /opt/vllm-ascend && \
      rm -rf /opt/vllm-ascend; \
    fi

# Megatron-LM core_v0.15.3
RUN /opt/ascend-runner/install --git https://github.com/NVIDIA/Megatron-LM.git 309ffca6a40553362d44fd17efc56b772fa1aa44 /opt/Megatron-LM
ENV MEGATRON_LM_PATH=/opt/Megatron-LM PYTHONPATH=/opt/Megatron-LM${PYTHONPATH:+:$PYTHONPATH}

# MindSpeed core_r0.15.3
RUN /opt/ascend-runner/install --git https://gitcode.com/Ascend/MindSpeed.git d0d5809d4323eb908f89e87958de254465eb57b4 /opt/MindSpeed
RUN if [ -d /opt/MindSpeed ]; then \
      /opt/ascend-runner/install --run python3 -m pip install --no-deps --no-build-isolation -e /opt/MindSpeed; \
    fi

# A branch or tag of ms-swift instead of the locked release
ARG SWIFT_REF=
COPY --from=lock /lock/layers/ms-swift.txt /lock/layers/ms-swift.unlocked.txt /opt/ascend-runner/lock/
RUN if [ -n "$SWIFT_REF" ]; then \
      /opt/ascend-runner/install --run python3 -m pip install --no-deps "git+https://github.com/modelscope/ms-swift.git@$SWIFT_REF" && \
      echo "$SWIFT_REF" >/opt/ascend-runner/swift_ref; \
    else \
      /opt/ascend-runner/install ms-swift; \
    fi

# After all others, whose wishes could bring another triton
COPY --from=lock /lock/layers/triton-ascend.txt /lock/layers/triton-ascend.unlocked.txt /opt/ascend-runner/lock/
RUN /opt/ascend-runner/install triton-ascend

# The supervisor of every attempt, and the environment of CANN for whatever way a process comes in
COPY runner/entry /opt/ascend-runner/entry
COPY runner/inside/capture_env.py runner/inside/verify_image.py /opt/ascend-runner/
COPY Dockerfiles/rendered/swift-4.2-cann8.5-A2.json /opt/ascend-runner/stack.json
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
      org.opencontainers.image.title="ms-swift for A2" \
      org.opencontainers.image.description="The older generation, CANN 8.5.0 with vLLM-Ascend 0.14.0rc1 and ms-swift 4.2" \
      org.opencontainers.image.version="4.2.3" \
      org.opencontainers.image.base.name="quay.io/ascend/cann:8.5.0-910b-ubuntu22.04-py3.11" \
      org.ascend-runner.stack="swift-4.2-cann8.5" \
      org.ascend-runner.generation="A2" \
      org.ascend-runner.soc="ascend910b1" \
      org.ascend-runner.cann="8.5.0" \
      org.ascend-runner.python="3.11" \
      org.ascend-runner.os="ubuntu22.04" \
      org.ascend-runner.driver.minimum="25.0" \
      org.ascend-runner.driver.paired="25.5.0" \
      org.ascend-runner.package.torch="2.9.0" \
      org.ascend-runner.package.torchvision="0.24.0" \
      org.ascend-runner.package.torchaudio="2.9.0" \
      org.ascend-runner.package.torch-npu="2.9.0" \
      org.ascend-runner.package.vllm="0.14.0" \
      org.ascend-runner.package.vllm-ascend="0.14.0rc1" \
      org.ascend-runner.package.triton-ascend="3.2.0" \
      org.ascend-runner.package.ms-swift="4.2.3" \
      org.ascend-runner.package.transformers="4.57.6" \
      org.ascend-runner.package.trl="0.29.1" \
      org.ascend-runner.package.peft="0.19.1" \
      org.ascend-runner.package.accelerate="1.14.0" \
      org.ascend-runner.package.deepspeed="0.19.1" \
      org.ascend-runner.package.evalscope="1.8.0" \
      org.ascend-runner.package.msgspec="0.21.1" \
      org.ascend-runner.package.megatron-core="0.15.3" \
      org.ascend-runner.package.megatron-lm="core_v0.15.3@309ffca6a40553362d44fd17efc56b772fa1aa44" \
      org.ascend-runner.package.mindspeed="core_r0.15.3@d0d5809d4323eb908f89e87958de254465eb57b4" \
      org.ascend-runner.package.mcore-bridge="1.4.3" \
      org.ascend-runner.package.wheel="0.47.0" \
      org.ascend-runner.lock.swift-4.2-cann8.5-aarch64="sha256:9b89a9f16992a059c3b0c2e63cc3e56b256af9c9eaedc765720bd9344faaae01" \
      org.ascend-runner.lock.swift-4.2-cann8.5-x86_64="sha256:eb8aef3c538737d1cfbdd2f50442ceb5678c7aef07a7079cb9a0a96a924cc512" \
      org.opencontainers.image.base.digest="$BASE_DIGEST" \
      org.ascend-runner.builder.commit="$BUILDER_COMMIT"
ENTRYPOINT ["/opt/ascend-runner/with-env"]
CMD ["bash"]
