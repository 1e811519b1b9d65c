"""What the runner costs: medians of whole processes, with peers beside ours where they can be installed.

    python tests/bench/bench.py [--peers]

`--peers` makes a virtual environment with torchx and submitit in build/peers and measures them too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNNER = Path(sys.executable).parent / "runner"
TIMES = 10
PEERS = ("torchx==0.7.0", "submitit==1.5.4")
TRUE = "name: bench\nkind: command\ncommand: ['true']\n"


@dataclass(frozen=True)
class Bench:
    """A home and a working folder of its own."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def env(self) -> Mapping[str, str]:
        clean = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        return {**clean, "RUNNER_HOME": str(self.home), "RUNNER_SITE": str(self.folder / "site.yaml")}

    def run(self, *args: str | Path) -> bytes:
        done = subprocess.run([RUNNER, *args], env=self.env, cwd=self.folder, check=True, capture_output=True)
        return done.stdout

    def job(self, name: str, text: str) -> Path:
        folder = self.folder / name
        folder.mkdir()
        (folder / "job.yaml").write_text(text)
        return folder / "job.yaml"

    def wait_until_idle(self) -> float:
        """Seconds until no process of this home is left."""
        begun = time.perf_counter()
        mark = os.fsencode(f"RUNNER_HOME={self.home}\0")
        while any(mark in _environ(p) for p in Path("/proc").glob("[0-9]*")):
            time.sleep(0.01)
        return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", action="store_true")
    peers = parser.parse_args().peers
    rows: list[tuple[str, float, str, str]] = []
    with tempfile.TemporaryDirectory(prefix="runner-bench-") as folder:
        bench = Bench(Path(folder))
        rows.append(("runner --help", median(lambda: bench.run("--help")), "s", "<= 0.15"))
        example = ROOT / "jobs" / "quickstart-cpu.yaml"
        rows.append(
            ("runner check (an example)", median(lambda: bench.run("check", example)), "s", "<= 0.30")
        )
        job = bench.job("true", TRUE)
        rows.append(
            ("submit --wait of `true`", median(lambda: bench.run("submit", "--wait", job)), "s", "<= 0.40")
        )
        rows.append(("end of a process noticed", noticed(bench), "s", "<= 0.1"))
        rows.append(("200 runs in one submit", many(bench, 200), "runs/s", ">= 20"))
        rows.append(("no process left, after", bench.wait_until_idle(), "s", ""))
        rows.append(("logs -f of 500 MB", logs(bench), "MB/s", ">= 50"))
        stored = finished(bench, 10_000)
        rows.append(
            (f"runner ps, {stored} runs stored", median(lambda: bench.run("ps", "--all")), "s", "<= 0.35")
        )
    if peers:
        rows += measured_peers()
    width = max(len(r[0]) for r in rows)
    print(f"{'what':<{width}}  {'median':>9}         wanted")
    for what, value, unit, wanted in rows:
        print(f"{what:<{width}}  {value:9.3f} {unit:<6}  {wanted}")


def median(once: Callable[[], object], times: int = TIMES) -> float:
    """Seconds; the first call is thrown away."""
    once()
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        once()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def noticed(bench: Bench) -> float:
    """From the end of a step's process to the end of the run in the index."""
    job = bench.job("stamp", "name: stamp\nkind: command\ncommand: [sh, -c, 'sleep 0.3; date +%s.%N']\n")
    late = []
    for _ in range(TIMES):
        bench.run("submit", "--wait", job)
        shown = json.loads(bench.run("show", "--json"))
        log = Path(shown["folder"]) / "steps" / "stamp" / "attempts" / "1" / "log.txt"
        stamp = next(line for line in log.read_text().splitlines() if line[:1].isdigit())
        late.append(shown["run"]["ended"] - float(stamp))
    return statistics.median(late)


def many(bench: Bench, count: int) -> float:
    """Runs a second, from one submit to the end of the last."""
    matrix = f"params: {{i: 0}}\nmatrix: {{i: {list(range(count))}}}\n"
    job = bench.job("many", TRUE + matrix)
    begun = time.perf_counter()
    bench.run("submit", "--wait", job)
    return count / (time.perf_counter() - begun)


def logs(bench: Bench) -> float:
    """MB a second that `logs -f` prints of a step that prints them meanwhile; none may be missing."""
    script = "import sys\nb = b''.join(b'%09d ' % i + b'x' * 90 + b'\\n' for i in range(50_000))\n"
    script += "for _ in range(100): sys.stdout.buffer.write(b)\n"
    job = bench.job("print", "name: print\nkind: command\ncommand: [python3, print.py]\n")
    (job.parent / "print.py").write_text(script)
    begun = time.perf_counter()
    bench.run("submit", "--detach", job)
    with subprocess.Popen(
        [RUNNER, "logs", "-f", "--step", "print"], env=bench.env, stdout=subprocess.PIPE
    ) as follow:
        assert follow.stdout is not None
        seen, size = hashlib.sha256(), 0
        while chunk := follow.stdout.read(1 << 20):
            seen.update(chunk)
            size += len(chunk)
    taken = time.perf_counter() - begun
    shown = json.loads(bench.run("show", "--json"))
    log = Path(shown["folder"]) / "steps" / "print" / "attempts" / "1" / "log.txt"
    assert seen.digest() == hashlib.sha256(log.read_bytes()).digest(), "bytes are missing"
    return size / 1e6 / taken


def finished(bench: Bench, count: int) -> int:
    """Fill the index with copies of a run that has ended."""
    bench.wait_until_idle()
    db = sqlite3.connect(bench.home / "state.db")
    have = db.execute("SELECT count(*) FROM runs").fetchone()[0]
    source = db.execute("SELECT max(id) FROM runs").fetchone()[0]
    for table, key in (("runs", "id"), ("steps", "run"), ("attempts", "run")):
        columns = [r[1] for r in db.execute(f"PRAGMA table_info({table})")]
        row = dict(
            zip(
                columns,
                db.execute(f"SELECT * FROM {table} WHERE {key} = ?", (source,)).fetchone(),
                strict=True,
            )
        )
        marks = ", ".join("?" * len(columns))
        copies = (tuple({**row, key: source + i}.values()) for i in range(1, count - have + 1))
        db.executemany(f"INSERT INTO {table} VALUES ({marks})", copies)
    db.commit()
    total = int(db.execute("SELECT count(*) FROM runs").fetchone()[0])
    db.close()
    return total


SUBMITIT = """
import submitit
executor = submitit.AutoExecutor(folder="logs", cluster="local")
executor.update_parameters(timeout_min=1)
executor.submit(submitit.helpers.CommandFunction(["true"])).result()
"""


def measured_peers() -> list[tuple[str, float, str, str]]:
    """The same `true` through other runners."""
    venv = ROOT / "build" / "peers"
    if not (venv / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
        subprocess.run([venv / "bin" / "pip", "install", "-q", *PEERS], check=True)
        (venv / "done").touch()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "s.py").write_text(SUBMITIT)
        torchx = [
            venv / "bin" / "torchx", "run", "--workspace=", "-s", "local_cwd", "--wait", "utils.sh", "true",
        ]  # fmt: skip

        def run(*words: str | Path) -> None:
            subprocess.run(words, cwd=folder, check=True, capture_output=True)

        return [
            ("peer: torchx --help", median(lambda: run(venv / "bin" / "torchx", "--help")), "s", ""),
            ("peer: torchx local_cwd of `true`", median(lambda: run(*torchx), 5), "s", ""),
            (
                "peer: submitit local of `true`",
                median(lambda: run(venv / "bin" / "python", "s.py"), 5),
                "s",
                "",
            ),
        ]


def _environ(proc: Path) -> bytes:
    try:
        return (proc / "environ").read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    assert shutil.which("python3")
    main()
