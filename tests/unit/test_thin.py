"""Progress bars in a finished log are thinned, and nothing else."""

from __future__ import annotations

import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.store.thin import thin_log, thin_states

BAR = [f"Train: {i:3}%|{'#' * (i // 10):10}| {i * 10}/1000 [00:{i % 60:02}]".encode() for i in range(101)]


def thinned(data: bytes) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.txt"
        log.write_bytes(data)
        rewritten = thin_log(log)
        assert [p.name for p in Path(folder).iterdir()] == ["log.txt"]
        after = log.read_bytes()
        assert rewritten == (after != data)
        return after


def test_a_bar_keeps_one_state_for_each_tenth_and_its_last() -> None:
    drawn = b"\r" + b"\r".join(s for state in BAR for s in [state] * 50)
    before, bar, after, end = thinned(b"before\r\n" + drawn + b"\r\nafter\n").split(b"\n")
    assert (before, after, end) == (b"before\r", b"after", b"")
    first, *states, last = bar.split(b"\r")
    assert (first, last) == (b"", b"")  # \r\n stays
    assert [int(s[6:10]) for s in states] == [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    assert states[-1] == BAR[-1]


def test_few_states_stay_all() -> None:
    data = b"a\rb\rc\n" + b"\r".join(BAR[:12]) + b"\n"
    assert thinned(data) == data


def test_without_percents_only_the_ends_stay() -> None:
    assert thinned(b"\r".join(b"%d it" % i for i in range(500))) == b"0 it\r1 it\r499 it"


TEXT = st.lists(
    st.sampled_from([b"\r", b"\r\n", b"\n", b"x", *BAR[::7]]) | st.binary(max_size=6), max_size=60
)


@settings(deadline=None)  # a disk may be slow
@given(TEXT)
def test_lines_that_are_not_drawn_again_stay_byte_for_byte(parts: list[bytes]) -> None:
    lines = b"".join(parts).split(b"\n")
    after = thinned(b"\n".join(lines)).split(b"\n")
    assert len(after) == len(lines)
    for line, kept in zip(lines, after, strict=True):
        if b"\r" not in line.removesuffix(b"\r"):
            assert kept == line


@settings(deadline=None)  # a disk may be slow
@given(TEXT)
def test_twice_is_as_once_and_the_last_state_stays(parts: list[bytes]) -> None:
    data = b"".join(parts)
    once = thinned(data)
    assert thinned(once) == once
    for line, kept in zip(data.split(b"\n"), once.split(b"\n"), strict=True):
        assert kept.removesuffix(b"\r").rpartition(b"\r")[2] == line.removesuffix(b"\r").rpartition(b"\r")[2]
        assert kept.count(b"\r") <= 12


@given(st.lists(st.sampled_from(BAR) | st.binary(max_size=5), max_size=400))
def test_what_stays_was_there_in_this_order(states: list[bytes]) -> None:
    kept = thin_states(states)
    left = iter(states)
    assert all(state in left for state in kept)
    assert kept[-1:] == states[-1:]


@pytest.mark.parametrize("shift", [0, 1, 2, 30])
def test_wherever_the_file_is_cut_into_chunks(shift: int) -> None:
    bar = b"\r".join(s for state in BAR for s in [state] * 500)  # more than two chunks
    edge = b"y" * ((1 << 20) - 40 + shift)
    small = thinned(b"\r".join(s for state in BAR for s in [state] * 20)).count(b"\r")
    after = thinned(edge + b"\r\n" + bar + b"\r\n" + b"z" * (3 << 20) + b"\r" + bar + b"\nend")
    lines = after.split(b"\n")
    assert lines[0] == edge + b"\r"
    assert lines[1].endswith(BAR[-1] + b"\r")
    assert lines[1].count(b"\r") <= small + 1
    assert lines[2].startswith(b"z" * (3 << 20) + b"\r")
    assert lines[2].count(b"\r") <= small + 1
    assert lines[3] == b"end"


def test_a_state_too_long_for_a_bar_ends_the_thinning_of_its_line() -> None:
    long = b"q" * (5 << 20)
    after = thinned(b"\r".join([*BAR, long, *BAR]) + b"\nnext\n")
    assert after.endswith(b"\r" + long + b"\r" + b"\r".join(BAR) + b"\nnext\n")
    assert thinned(after) == after


def test_the_mode_stays(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_bytes(b"\r".join(BAR))
    log.chmod(0o640)
    assert thin_log(log)
    assert stat.S_IMODE(log.stat().st_mode) == 0o640


def test_there_is_nothing_to_thin(tmp_path: Path) -> None:
    assert not thin_log(tmp_path / "none.txt")
    log = tmp_path / "log.txt"
    log.write_bytes(b"a\rb\r\nplain\n")
    before = log.stat()
    assert not thin_log(log)
    assert (log.stat().st_ino, log.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


ON_A_FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from runner.store.thin import thin_log
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # writing fails as on a full disk
sys.exit(thin_log(Path(sys.argv[1])))
"""


def test_what_cannot_be_written_leaves_the_log_as_it_is(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    data = b"plain\n" * 1000 + b"\r".join(BAR)
    log.write_bytes(data)
    done = subprocess.run([sys.executable, "-c", ON_A_FULL_DISK, log], check=False)
    assert done.returncode == 0
    assert log.read_bytes() == data
    assert [p.name for p in tmp_path.iterdir()] == ["log.txt"]


def test_a_line_of_any_length_needs_little_memory(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    piece = b"\r".join(BAR * 200) + b"\r"
    with log.open("wb") as f:
        for _ in range(100):
            f.write(piece)
    code = "import sys; from pathlib import Path; from runner.store.thin import thin_log\n"
    code += "import resource; resource.setrlimit(resource.RLIMIT_AS, (70 << 20,) * 2)\n"
    code += "assert thin_log(Path(sys.argv[1]))"
    assert log.stat().st_size > 80_000_000
    subprocess.run([sys.executable, "-c", code, log], check=True)
    assert log.stat().st_size < 2000
