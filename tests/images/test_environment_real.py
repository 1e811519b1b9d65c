"""CANN's environment reaches a process whatever way it comes into a container."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from imagebuild import BASE, PROJECT

Docker = Callable[..., str]
SHOW = "import os; print(os.environ.get('ASCEND_TOOLKIT_HOME'), os.environ.get('LD_LIBRARY_PATH'))"
DOCKERFILE = f"""\
FROM {BASE}
RUN mkdir -p /usr/local/Ascend/ascend-toolkit /usr/local/Ascend/nnal/atb /opt/py/bin && \\
    printf '%s\\n' 'export ASCEND_TOOLKIT_HOME="/usr/local/Ascend/a b"' \\
      'export LD_LIBRARY_PATH=/cann/lib64:$LD_LIBRARY_PATH' >/usr/local/Ascend/ascend-toolkit/set_env.sh && \\
    echo 'export LD_LIBRARY_PATH=/atb/lib:$LD_LIBRARY_PATH' >/usr/local/Ascend/nnal/atb/set_env.sh && \\
    python3 -m venv --without-pip /opt/py
ENV PATH=/opt/py/bin:$PATH MEGATRON_LM_PATH=/opt/Megatron-LM PYTHONPATH=/opt/Megatron-LM
COPY capture_env.py /opt/ascend-runner/
RUN python3 /opt/ascend-runner/capture_env.py && useradd -m ascend
ENV PATH=/opt/ascend-runner/bin:$PATH BASH_ENV=/opt/ascend-runner/env.sh
ENTRYPOINT ["/opt/ascend-runner/with-env"]
CMD ["bash"]
"""
WANTED = "/usr/local/Ascend/a b /atb/lib:/cann/lib64"


@pytest.fixture(scope="module")
def container(docker: Docker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("env")
    (folder / "Dockerfile").write_text(DOCKERFILE)
    shutil.copy(PROJECT / "runner" / "inside" / "capture_env.py", folder)
    docker("build", "-q", "--network=host", "-t", "env:1", str(folder))
    name = docker("run", "-d", "--network=none", "env:1", "sleep", "600").strip()
    yield name
    docker("rm", "-f", name)


RUN = ("run", "--rm", "--network=none")
PY = ("python3", "-c", SHOW)


@pytest.mark.parametrize(
    "way",
    [
        (*RUN, "env:1", *PY),
        (*RUN, "--user", "ascend", "env:1", *PY),
        (*RUN, "--entrypoint", "python3", "env:1", *PY[1:]),  # what a Kubernetes `command:` does
        (*RUN, "--entrypoint", "bash", "env:1", "-c", f'python3 -c "{SHOW}"'),
        (*RUN, "--entrypoint", "sh", "env:1", "-c", f'python3 -c "{SHOW}"'),
        (*RUN, "--entrypoint", "env", "env:1", "-i", "bash", "-lc", f'python3 -c "{SHOW}"'),
        ("exec", "{}", *PY),
        ("exec", "--user", "ascend", "{}", *PY),
        ("exec", "{}", "bash", "-c", f'exec -a x python3 -c "{SHOW}"'),
        ("exec", "{}", "su", "-", "ascend", "-c", f'python3 -c "{SHOW}"'),
        ("exec", "{}", "su", "ascend", "-c", f'python3 -c "{SHOW}"'),
    ],
    ids=lambda way: " ".join(way)[:50],
)  # fmt: skip
def test_the_environment_is_there(docker: Docker, container: str, way: tuple[str, ...]) -> None:
    assert docker(*(container if word == "{}" else word for word in way)).strip() == WANTED


def test_what_a_process_has_already_stays_behind_ours(docker: Docker, container: str) -> None:
    own = ("exec", "-e", "LD_LIBRARY_PATH=/mine", "-e", "PYTHONPATH=/my/py", container)
    assert docker(*own, *PY).strip() == WANTED + ":/mine"
    path = docker(*own, "python3", "-c", "import os; print(os.environ['PYTHONPATH'])").strip()
    assert path == "/opt/Megatron-LM:/my/py"
    twice = docker("exec", container, "bash", "-c", f'. /opt/ascend-runner/env.sh; python3 -c "{SHOW}"')
    assert twice.strip() == WANTED
