"""What a run survives: an upgrade, crowds, disks that cannot be used, and what must never be written down."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from cli import Cli

from runner.errors import UnreachableError
from runner.store.database import VERSION, refuse_shared

OLD = Path(__file__).parent / "old_state"


def command(words: str, more: str = "") -> str:
    return f"name: one\nkind: command\ncommand: {words}\n{more}"


@pytest.mark.parametrize("version", sorted(p.name for p in OLD.iterdir()))
def test_an_old_state_loads_and_goes_on(cli: Cli, version: str) -> None:
    """Three runs of that version: a pipeline that succeeded, one that failed twice, and an open one."""
    for path in (OLD / version).rglob("*"):
        target = cli.home / path.relative_to(OLD / version)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            home = str(cli.home).replace("'", "''") if path.suffix == ".sql" else str(cli.home)
            target.write_text(path.read_text().replace("@HOME@", home))
    db = sqlite3.connect(cli.home / "state.db")
    db.executescript((cli.home / "state.sql").read_text())
    db.close()
    runs = cli.json("ps", "--all")["runs"]
    assert [(r["id"], r["name"], r["point"], r["priority"]) for r in runs] == [
        (3, "open", {}, 0), (2, "fails", {}, 0), (1, "pipe", {}, 0),
    ]  # fmt: skip
    cli("wait", "3", code=5)  # its supervisor is long gone
    states = {s["name"]: (s["state"], s["reason"]) for s in cli.json("show", "3")["steps"]}
    assert states["first"][0] == "SUCCEEDED"
    assert states["second"] == ("LOST", "host_lost")
    assert states["third"][0] == "SKIPPED"
    assert "made" in cli("logs", "1").stdout
    assert [a["code"] for a in cli.json("show", "2")["attempts"]] == [9, 9]
    cli("retry", "2", "--wait", code=9)
    assert len(cli.json("show", "2")["attempts"]) == 4
    cli("submit", "--wait", "--from", "1")
    cli.wait_until_idle()


def test_there_is_an_old_state_of_every_version_before_this_one() -> None:
    assert [p.name for p in sorted(OLD.iterdir())] == [f"v{n}" for n in range(1, VERSION)]


def test_a_state_of_a_newer_runner_is_left_alone(cli: Cli) -> None:
    db = sqlite3.connect(cli.home / "state.db")
    db.execute("PRAGMA user_version = 99")
    db.close()
    assert "upgrade the runner" in cli("ps", code=5).stderr
    (cli.home / "state.db").unlink()


def test_fifty_submits_at_once_all_get_done_in_order(cli: Cli) -> None:
    (cli.home / "site.yaml").write_text("limits: {runs: 2}\n")
    ledger = cli.work / "ledger"
    more = "resources: {ports: 2}\nsnapshot: false"
    script = (
        f"""[sh, -c, 'echo $0 start $RUNNER_PORTS >> "{ledger}"; sleep 0.05; echo $0 end >> "{ledger}"', """
    )
    job = cli.job(command(script + '"${{ run.id }}"]', more))
    started = [cli.start("submit", "--wait", job) for _ in range(50)]
    for process in started:
        process.communicate(timeout=150)
    assert {p.returncode for p in started} == {0}
    living: dict[str, set[str]] = {}
    order = []
    for line in ledger.read_text().splitlines():
        run, what, *ports = line.split()
        if what == "start":
            order.append(int(run))
            mine = set(ports[0].split(","))
            assert len(mine) == 2
            assert not any(mine & others for others in living.values())
            living[run] = mine
            assert len(living) <= 2
        else:
            del living[run]
    assert sorted(order) == list(range(1, 51))
    swaps = sum(a > b for a, b in pairwise(order))
    assert swaps <= 25, order  # two start together, and print in either order
    cli.wait_until_idle()


@pytest.fixture
def four_devices() -> Iterator[None]:
    """Device nodes as an Ascend host has them, made of /dev/null."""
    if os.geteuid() != 0 or list(Path("/dev").glob("davinci*")):
        pytest.skip("only root can make device nodes, and only where there are none")
    nodes = [Path(f"/dev/davinci{n}") for n in range(4)]
    for node in nodes:
        os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    yield
    for node in nodes:
        node.unlink()


def test_devices_are_never_granted_twice(cli: Cli, four_devices: None) -> None:
    root = cli.work.parent / "stack"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    cli("stack", "adopt", "swift-4.3-cann9.0", root)
    ledger = cli.work / "ledger"
    held = "$0 start $ASCEND_RT_VISIBLE_DEVICES"
    words = f"""[sh, -c, 'echo {held} >> "{ledger}"; sleep 0.1; echo $0 end >> "{ledger}"', """
    more = "stack: swift-4.3-cann9.0\nsnapshot: false\nresources: {npus: %d}"
    jobs = [cli.job(command(words + '"${{ run.id }}"]', more % n), f"{n}.yaml") for n in (1, 2, 3)]
    started = [cli.start("submit", "--wait", jobs[i % 3]) for i in range(15)]
    for process in started:
        process.communicate(timeout=120)
    assert {p.returncode for p in started} == {0}
    living: dict[str, set[str]] = {}
    for line in ledger.read_text().splitlines():
        run, what, *devices = line.split()
        if what == "start":
            mine = set(devices[0].split(","))
            assert not any(mine & others for others in living.values())
            living[run] = mine
        else:
            del living[run]
    assert len(ledger.read_text().splitlines()) == 30
    assert "this host has 4" in cli("submit", cli.job(command(words + "x]", more % 5)), code=3).stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_read_only_state_folder_is_said_plainly(cli: Cli, tmp_path: Path) -> None:
    home = tmp_path / "只读"
    job = cli.job(command("['true']"))
    cli("submit", "--wait", job, RUNNER_HOME=str(home))
    cli.wait_until_idle()
    time.sleep(0.5)
    subprocess.run(["mount", "--bind", home, home], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", home, home], check=True)
        for args in (["submit", job], ["stop", "1"], ["retry", "1"]):
            said = cli(*args, code=5, RUNNER_HOME=str(home)).stderr
            assert str(home) in said
            assert "RUNNER_HOME" in said
        before = (home / "state.db").read_bytes()
    finally:
        subprocess.run(["umount", home], check=True)
    assert (home / "state.db").read_bytes() == before
    assert len(json.loads(cli("ps", "--all", "--json", RUNNER_HOME=str(home)).stdout)["runs"]) == 1


MOUNTS = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 21 0:40 / /home rw shared:2 - nfs4 server:/home rw,vers=4.2
31 30 8:2 / /home/local\\040disk rw - xfs /dev/vdb rw
32 21 0:41 / /mnt/share rw - cifs //server/share rw
"""


@pytest.mark.parametrize("home", ["/home/me/.local/state", "/home", "/mnt/share/x"])
def test_a_network_file_system_is_refused(home: str) -> None:
    with pytest.raises(UnreachableError, match="network file system"):
        refuse_shared(Path(home), MOUNTS)


@pytest.mark.parametrize("home", ["/root/state", "/home/local disk/state", "/homes/me"])
def test_a_local_disk_is_not(home: str) -> None:
    refuse_shared(Path(home), MOUNTS)


def test_an_index_that_is_lost_is_never_written_over(cli: Cli) -> None:
    job = cli.job(command("[echo, mine]"))
    cli("submit", "--wait", job)
    cli.wait_until_idle()
    for file in cli.home.glob("state.db*"):
        file.unlink()
    assert "runner recover" in cli("submit", job, code=5).stderr
    assert "mine" in cli.log("one").read_text()
    cli("recover")
    cli("submit", "--wait", job)
    assert [r["id"] for r in cli.json("ps", "--all")["runs"]] == [2, 1]


def test_a_run_folder_that_goes_away_while_it_runs_is_lost(cli: Cli) -> None:
    cli("submit", cli.job(command("[sleep, '60']")))
    until = time.monotonic() + 10
    while not list(cli.folder().glob("steps/one/attempts/1/started.json")):
        assert time.monotonic() < until
        time.sleep(0.02)
    shutil.rmtree(cli.folder())
    cli("wait", "1", code=5, timeout=90)
    cli.wait_until_idle()


PLANTED = "PLANTED-9f8e7d6c5b4a"


def test_a_secret_is_written_nowhere(cli: Cli) -> None:
    """Not in the state, not in what commands print, not in a command line or a plan."""
    in_file = cli.home.parent / "secret file"
    in_file.write_text(f"{PLANTED}-file\n")
    job = f"""
name: secret
retry: {{attempts: 2, backoff: 0.1}}
steps:
  - name: use
    kind: command
    secrets: [TOKEN, {{OTHER: {{file: "{in_file}"}}}}]
    script: |
      test "$TOKEN" = {PLANTED[:8]}-9f8e7d6c5b4a-env && test "${{#OTHER}}" = 25
      sleep 1; exit 3
  - {{name: never, kind: command, command: ['true']}}
""".replace(f"{PLANTED[:8]}-9f8e7d6c5b4a-env", '"$(printf PLANT)ED-9f8e7d6c5b4a-env"')
    path = cli.job(job)
    said = [cli("submit", path, TOKEN=f"{PLANTED}-env")]
    seen: list[str] = []
    until = time.monotonic() + 30
    while cli.json("ps")["runs"]:
        assert time.monotonic() < until
        for proc in Path("/proc").glob("[0-9]*"):
            try:
                seen.append((proc / "cmdline").read_bytes().decode("utf-8", "replace"))
            except OSError:
                continue
    said += [cli("wait", "1", code=3), cli("show", "1"), cli("show", "--json"), cli("ps", "--all", "--json")]
    said += [cli("logs", "1"), cli("plan", path), cli("plan", path, "--json"), cli("check", path)]
    said += [cli("retry", "1", code=3), cli("retry", "1", "--wait", code=3, TOKEN=f"{PLANTED}-env")]
    assert [a["code"] for a in cli.json("show")["attempts"]] == [3, 3, 3, 3]
    cli.wait_until_idle()
    texts = [*seen, *(s.stdout + s.stderr for s in said)]
    assert not [t for t in texts if PLANTED in t]
    written = [p for p in cli.home.rglob("*") if p.is_file() and not p.is_symlink()]
    assert len(written) > 10
    assert not [p for p in written if PLANTED.encode() in p.read_bytes()]
    assert cli.held() == []


def test_a_run_whose_secret_is_lost_waits_and_says_how_to_go_on(cli: Cli) -> None:
    job = "name: s\nsteps:\n  - {name: a, kind: command, command: [sleep, '1.5']}\n"
    job += "  - {name: b, kind: command, secrets: [TOKEN], script: 'echo ${#TOKEN}'}\n"
    cli("submit", cli.job(job), TOKEN="12345")
    for held in cli.held():
        held.unlink()  # as a restart of the host does
    until = time.monotonic() + 20
    while "TOKEN" not in str(cli.steps()["b"]["why"]):
        assert time.monotonic() < until, cli.steps()
        time.sleep(0.05)
    assert "runner release 1" in cli("ps").stdout
    assert "TOKEN" in cli("release", "1", code=3).stderr
    cli("release", "1", TOKEN="1234567")
    cli("wait", "1")
    assert "7" in cli("logs", "1", "--step", "b").stdout.splitlines()
