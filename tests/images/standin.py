"""What stands in for a CANN image, and for what cannot be had on this machine, to build the NPU Dockerfiles.

It shows that every layer that needs no NPU compiler installs what the lock says and imports what can be
imported. It says nothing about CANN, kernels or devices, and none of it is ever published.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

SET_ENV = """\
export ASCEND_TOOLKIT_HOME=/usr/local/Ascend/ascend-toolkit/latest
export ASCEND_HOME_PATH=$ASCEND_TOOLKIT_HOME
export LD_LIBRARY_PATH=$ASCEND_TOOLKIT_HOME/lib64:$LD_LIBRARY_PATH
export PYTHONPATH=$ASCEND_TOOLKIT_HOME/python/site-packages:$PYTHONPATH
"""
ATB = "export ATB_HOME_PATH=/usr/local/Ascend/nnal/atb/latest/atb/cxx_abi_1\n"
ENTRY = """\
#!/bin/bash
source /usr/local/Ascend/ascend-toolkit/set_env.sh
source /usr/local/Ascend/nnal/atb/set_env.sh
exec "$@"
"""


def python_of(version: str) -> Path:
    """The folder of a Python of this version on this machine that can be copied."""
    found = shutil.which(f"python{version}")
    asked = [found] if found else []
    asked += sorted(str(p) for p in Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    for python in asked:
        code = "import sys; print(sys.base_prefix)"
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() not in ("/usr", "/usr/local"):
            return Path(done.stdout.strip())
    sys.exit(f"there is no Python {version} here that can be copied into a base image (one of pyenv's)")


def cuda_libraries(torch: str, python: str, folder: Path) -> Path:
    """The libraries that PyPI's torch for x86_64 links to; only their files, no packages."""
    target = folder / "cuda"
    if target.exists():
        return target
    wheels = folder / "cuda-wheels"
    (wheel,) = download([f"torch=={torch}"], python, folder / "torch")
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
    wanted = re.findall(r"^Requires-Dist: ((?:nvidia|cuda)-[^;\s]+)", text, re.M)
    draft = folder / "cuda.part"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for package in wanted:
        for one in download([package.replace("(", "").replace(")", "")], python, wheels):
            with zipfile.ZipFile(one) as archive:
                for name in archive.namelist():
                    if re.search(r"/lib\w+[^/]*\.so[^/]*$", name):
                        (draft / Path(name).name).write_bytes(archive.read(name))
            one.unlink()
    draft.replace(target)
    return target


def download(packages: list[str], python: str, folder: Path) -> list[Path]:
    """The wheels of packages, without what they ask for."""
    folder.mkdir(parents=True, exist_ok=True)
    before = set(folder.iterdir())
    argv = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--only-binary=:all:",
        "-d",
        str(folder),
    ]
    subprocess.run([*argv, "--python-version", python, *packages], check=True)
    return sorted(set(folder.glob("*.whl")) - before) or sorted(folder.glob("*.whl"))


def as_cpu_build(packages: dict[str, str], python: str, folder: Path) -> None:
    """PyPI's wheels under the name of the CPU build that the lock asks for."""
    for name, version in packages.items():
        if any(folder.glob(f"{name}-{version}+cpu-*.whl")):
            continue
        (wheel,) = [
            w for w in download([f"{name}=={version}"], python, folder / name) if w.name.startswith(name)
        ]
        new = folder / wheel.name.replace(f"-{version}-", f"-{version}+cpu-", 1)
        draft = folder / "draft"
        with zipfile.ZipFile(wheel) as was, zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as now:
            for item in was.infolist():
                inside = item.filename.replace(
                    f"{name}-{version}.dist-info", f"{name}-{version}+cpu.dist-info"
                )
                body = was.read(item)
                if inside.endswith("/METADATA"):
                    body = re.sub(rb"(?m)^Version: .*$", f"Version: {version}+cpu".encode(), body, count=1)
                    body = re.sub(rb"(?m)^Requires-Dist: (nvidia|cuda|triton).*\n", b"", body)
                now.writestr(inside, b"" if inside.endswith("/RECORD") else body)
        draft.replace(new)
        wheel.unlink()


def write_base(folder: Path, python: str, cuda: Path | None) -> None:
    """A folder that docker builds into an image with the layout of a CANN image."""
    shutil.rmtree(folder, ignore_errors=True)
    root = folder / "root"
    toolkit = root / "usr/local/Ascend/ascend-toolkit"
    for made in (toolkit / "latest/lib64", root / "usr/local/Ascend/nnal/atb", root / "usr/local/lib/cuda"):
        made.mkdir(parents=True)
    (toolkit / "set_env.sh").write_text(SET_ENV)
    (root / "usr/local/Ascend/nnal/atb/set_env.sh").write_text(ATB)
    (root / "entry.sh").write_text(ENTRY)
    (root / "entry.sh").chmod(0o755)
    shutil.copytree(
        python_of(python), root / f"usr/local/python{python}", symlinks=True,
        ignore=shutil.ignore_patterns("test", "__pycache__", "site-packages"),
    )  # fmt: skip
    for file in cuda.iterdir() if cuda else ():
        os.link(file, root / "usr/local/lib/cuda" / file.name)
    (folder / "Dockerfile").write_text(
        "FROM base:bookworm\nCOPY root /\n"
        "RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends "
        "libssl3 libffi8 libbz2-1.0 libsqlite3-0 liblzma5 libreadline8 libncursesw6 && "
        f"printf '%s\\n' /usr/local/lib/cuda /usr/local/python{python}/lib >/etc/ld.so.conf.d/own.conf && "
        "ldconfig\n"
        f"ENV PATH=/usr/local/python{python}/bin:$PATH\n"
        f"RUN python3 -m ensurepip >/dev/null && ln -sf pip3 /usr/local/python{python}/bin/pip\n"
        'ENTRYPOINT ["/entry.sh"]\nCMD ["bash"]\n'
    )
