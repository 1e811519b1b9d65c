"""Progress bars in a finished log are thinned, and nothing else."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from runner.store.thin import thin_line, thin_log

BAR = [f"Train: {i:3}%|{'#' * (i // 10):10}| {i * 10}/1000 [00:{i % 60:02}]".encode() for i in range(101)]


def test_a_bar_keeps_one_state_for_each_tenth_and_its_last(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    drawn = b"\r".join(s for state in BAR for s in [state] * 50)
    log.write_bytes(b"before\r\n" + drawn + b"\nafter\n")
    assert thin_log(log)
    before, bar, after, end = log.read_bytes().split(b"\n")
    assert (before, after, end) == (b"before\r", b"after", b"")
    states = bar.split(b"\r")
    assert states[0] == BAR[0]
    assert states[-1] == BAR[-1]
    assert len(states) == 11
    assert not thin_log(log)


@given(st.lists(st.binary(max_size=40).filter(lambda b: b"\r" not in b and b"\n" not in b)), st.booleans())
def test_lines_without_a_bar_stay_as_they_are(lines: list[bytes], windows: bool) -> None:
    end = b"\r" if windows else b""
    for line in lines:
        assert thin_line(line + end) == line + end


@given(st.binary(max_size=4000))
def test_twice_is_as_once_and_the_last_state_stays(line: bytes) -> None:
    line = line.replace(b"\n", b"")
    once = thin_line(line)
    assert thin_line(once) == once
    assert once.rstrip(b"\r").rpartition(b"\r")[2] == line.rstrip(b"\r").rpartition(b"\r")[2]
    assert len(once) <= len(line)


@given(st.binary(max_size=3000))
def test_a_file_is_thinned_line_by_line(data: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        log.write_bytes(data)
        thin_log(log)
        assert log.read_bytes() == b"\n".join(map(thin_line, data.split(b"\n")))
