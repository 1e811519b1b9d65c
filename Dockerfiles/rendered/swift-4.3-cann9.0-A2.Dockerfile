# The guide's own combination, CANN 9.0.0 with vLLM-Ascend 0.18.0 and ms-swift 4.3: A2 on ubuntu22.04.
# Rendered from Dockerfiles/stacks/swift-4.3-cann9.0.yaml; change that, then `make render`.
# Rendered and resolved, not run on hardware.
ARG BASE_IMAGE=quay.io/ascend/cann:9.0.0-910b-ubuntu22.04-py3.11

FROM ${BASE_IMAGE} AS lock
COPY Dockerfiles/files/split_lock Dockerfiles/locks/swift-4.3-cann9.0-aarch64.txt Dockerfiles/locks/swift-4.3-cann9.0-x86_64.txt /lock/
RUN bash /lock/split_lock /lock/swift-4.3-cann9.0-$(uname -m).txt /lock/layers build torch packages vllm-packages megatron-packages deepspeed-packages eval-packages vllm vllm-ascend ms-swift triton-ascend

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
ARG INDEX_ASCEND=https://mirrors.huaweicloud.com/ascend/repos/pypi
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
RUN VLLM_TARGET_DEVICE=empty VLLM_VERSION_OVERRIDE=0.18.0 /opt/ascend-runner/install vllm

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
      /opt/ascend-runner/install --git https://github.com/vllm-project/vllm-ascend.git e18643f8a4d5bd9990727654318ad069ea0b56e2 /opt/vllm-ascend && \
      VLLM_ASCEND_VERSION=0.18.0 SETUPTOOLS_SCM_PRETEND_VERSION=0.18.0 \
      /opt/ascend-runner/install --run python3 -m pip install --no-deps --no-build-isolation /opt/vllm-ascend && \
      rm -rf /opt/vllm-ascend; \
    fi

# Megatron-LM core_v0.16.0
RUN /opt/ascend-runner/install --git https://github.com/NVIDIA/Megatron-LM.git 3bec9aa97dda898d16ff5a89bac0ed2b6682b172 /opt/Megatron-LM
ENV MEGATRON_LM_PATH=/opt/Megatron-LM PYTHONPATH=/opt/Megatron-LM${PYTHONPATH:+:$PYTHONPATH}

# MindSpeed core_r0.16.0
RUN /opt/ascend-runner/install --git https://gitcode.com/Ascend/MindSpeed.git e4772499f7eb9fa9a68919dd1eaddef00e915b2d /opt/MindSpeed
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
COPY Dockerfiles/rendered/swift-4.3-cann9.0-A2.json /opt/ascend-runner/stack.json
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
      org.opencontainers.image.description="The guide's own combination, CANN 9.0.0 with vLLM-Ascend 0.18.0 and ms-swift 4.3" \
      org.opencontainers.image.version="4.3.2" \
      org.opencontainers.image.base.name="quay.io/ascend/cann:9.0.0-910b-ubuntu22.04-py3.11" \
      org.ascend-runner.stack="swift-4.3-cann9.0" \
      org.ascend-runner.generation="A2" \
      org.ascend-runner.soc="ascend910b1" \
      org.ascend-runner.cann="9.0.0" \
      org.ascend-runner.python="3.11" \
      org.ascend-runner.os="ubuntu22.04" \
      org.ascend-runner.driver.minimum="25.0" \
      org.ascend-runner.driver.paired="26.0.RC1" \
      org.ascend-runner.package.torch="2.9.0" \
      org.ascend-runner.package.torchvision="0.24.0" \
      org.ascend-runner.package.torchaudio="2.9.0" \
      org.ascend-runner.package.torch-npu="2.9.0.post2" \
      org.ascend-runner.package.vllm="0.18.0" \
      org.ascend-runner.package.vllm-ascend="0.18.0" \
      org.ascend-runner.package.triton-ascend="3.2.1" \
      org.ascend-runner.package.ms-swift="4.3.2" \
      org.ascend-runner.package.transformers="4.57.6" \
      org.ascend-runner.package.trl="0.29.1" \
      org.ascend-runner.package.peft="0.19.1" \
      org.ascend-runner.package.accelerate="1.14.0" \
      org.ascend-runner.package.deepspeed="0.19.2" \
      org.ascend-runner.package.evalscope="1.8.1" \
      org.ascend-runner.package.flash-linear-attention="0.4.2" \
      org.ascend-runner.package.msgspec="0.21.1" \
      org.ascend-runner.package.megatron-core="0.16.0" \
      org.ascend-runner.package.megatron-lm="core_v0.16.0@3bec9aa97dda898d16ff5a89bac0ed2b6682b172" \
      org.ascend-runner.package.mindspeed="core_r0.16.0@e4772499f7eb9fa9a68919dd1eaddef00e915b2d" \
      org.ascend-runner.package.mcore-bridge="1.5.2" \
      org.ascend-runner.package.wheel="0.47.0" \
      org.ascend-runner.lock.swift-4.3-cann9.0-aarch64="sha256:f2b2faf32517f1435bb0a4886c3958e529543e4777c91a9e4d1d06d10757fde1" \
      org.ascend-runner.lock.swift-4.3-cann9.0-x86_64="sha256:238ca18d9b55831c81595e462b25ef4f784acef0c7c3429cefab4e9f1cf50a98" \
      org.opencontainers.image.base.digest="$BASE_DIGEST" \
      org.ascend-runner.builder.commit="$BUILDER_COMMIT"
ENTRYPOINT ["/opt/ascend-runner/with-env"]
CMD ["bash"]
