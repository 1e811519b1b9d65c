"""Holds what the runner says of its runs against the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from chaosjobs import ChaosJob, ChaosStep
from ledger import Try, read_ledger
from livehome import LiveHome, wait_for


@dataclass
class Verdict:
    """How often each promise was broken, with evidence."""

    runs: int = 0
    steps: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    evidence: list[str] = field(default_factory=list)

    def wrong(self, what: str, evidence: str) -> None:
        """Note one broken promise."""
        self.counts[what] += 1
        self.evidence.append(f"{what}: {evidence}")


def settle(house: LiveHome, verdict: Verdict, seconds: float) -> None:
    """One plain `runner ps`, and then nothing but waiting until every run has ended."""
    said = house.finish("ps")
    if said.process.returncode:
        verdict.wrong("other", f"`runner ps` after all: {said.process.returncode} {said.err.read_text()}")
    if not wait_for(lambda: not house.open_runs(), seconds, 0.1):
        for run in house.open_runs():
            steps = house.rows(f"SELECT name, state, why FROM steps WHERE run = {run}")
            verdict.wrong("lost", f"run {run} did not end in {seconds:g} s: {steps}; agent {house.agent()}")
    wait_for(lambda: not any(t.alive for t in house.talks), 15, 0.05)
    for talk in house.talks:
        if talk.kill():
            verdict.wrong("other", f"`runner {' '.join(talk.args)}` does not come to its end")


def judge(house: LiveHome, jobs: Mapping[str, ChaosJob], *, disturbed: bool = False) -> Verdict:
    """Everything that must hold after the storm; `disturbed` when attempts themselves were killed."""
    verdict = Verdict()
    settle(house, verdict, 120)
    ledger = read_ledger(house.ledger)
    visible: dict[str, int] = {}
    rows = house.rows("SELECT id, name, state FROM runs")
    for run, name, state in rows:
        if state == "NEW":
            continue
        if name in visible:
            verdict.wrong("doubled", f"{name} is run {visible[name]} and run {run}")
        visible[name] = run
        _judge_run(house, run, jobs[name], ledger, verdict, disturbed=disturbed)
    for name, job in jobs.items():
        if name not in visible and (seen := [s.token for s in job.steps if s.token in ledger]):
            verdict.wrong("other", f"{name} is no run, and {seen} have started")
    _judge_talks(house, jobs, visible, verdict, disturbed=disturbed)
    _judge_ports(ledger, verdict)
    _judge_remains(house, {r[0] for r in rows}, verdict)
    return verdict


def _judge_run(
    house: LiveHome,
    run: int,
    job: ChaosJob,
    ledger: Mapping[str, list[Try]],
    verdict: Verdict,
    *,
    disturbed: bool,
) -> None:
    told = house.show(run)
    verdict.runs += 1
    stopped = bool(told["run"]["stop"])
    states = {s["name"]: s["state"] for s in told["steps"]}
    expected = job.states()
    for step in job.steps:
        verdict.steps += 1
        attempts = [a for a in told["attempts"] if a["step"] == step.name]
        tries = ledger.get(step.token, [])
        where = f"run {run} ({job.name}) step {step.name}"
        _judge_tries(house, where, step, attempts, tries, verdict)
        if disturbed:
            expected[step.name] = _by_policy(job, step, attempts, expected)
            if strange := [a for a in attempts if a["reason"] not in ("exit_code", "host_lost")]:
                verdict.wrong("wrong_states", f"{where}: {strange}")
        elif not stopped and expected[step.name] != "SKIPPED":
            codes = step.ends(job.attempts)[1]
            if [a["code"] for a in attempts] != codes:
                verdict.wrong("wrong_codes", f"{where}: {[a['code'] for a in attempts]}, must be {codes}")
        allowed = {expected[step.name], *(("CANCELLED", "SKIPPED") if stopped else ())}
        if states[step.name] not in allowed:
            verdict.wrong("wrong_states", f"{where} is {states[step.name]}, must be {sorted(allowed)}")
    whole = next((s for s in ("LOST", "FAILED", "CANCELLED") if s in states.values()), "SUCCEEDED")
    if told["run"]["state"] != whole or told["run"]["ended"] is None:
        verdict.wrong("wrong_states", f"run {run} is {told['run']['state']}, its steps say {whole}")


def _judge_tries(
    house: LiveHome,
    where: str,
    step: ChaosStep,
    attempts: Sequence[Mapping[str, Any]],
    tries: Sequence[Try],
    verdict: Verdict,
) -> None:
    """Each attempt started once and with its own end; no try beside or without an attempt."""
    rows = {a["n"]: a for a in attempts}
    for one in tries:
        if len(one.starts) != 1 or one.n not in rows or len(one.ends) > 1:
            verdict.wrong("doubled", f"{where}: {one}, attempts {sorted(rows)}")
    for one, later in pairwise(tries):
        if one.last > min(later.starts, default=one.last):
            verdict.wrong(
                "doubled", f"{where}: try {one.n} was alive when {later.n} had started: {one}, {later}"
            )
    by_n = {t.n: t for t in tries}
    for n, row in rows.items():
        if row["state"] != "ENDED":
            verdict.wrong("other", f"{where}: attempt {n} is {row['state']}")
        if row["reason"] != "exit_code":  # killed, or stopped before its end
            continue
        found = by_n.get(n)
        if found is None or not found.ends:
            verdict.wrong("lost", f"{where}: attempt {n} {row} has no start and end in the ledger: {found}")
        elif found.codes != [row["code"]]:
            verdict.wrong("wrong_codes", f"{where}: attempt {n} says {row['code']}, the ledger {found.codes}")
        else:
            _judge_log(house, where, step, found, verdict)


def _judge_log(house: LiveHome, where: str, step: ChaosStep, one: Try, verdict: Verdict) -> None:
    folder = house.home / "runs" / f"{one.run:06d}" / "steps" / step.name / "attempts" / str(one.n)
    text = (folder / "log.txt").read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.splitlines() if line.startswith(f"{step.token} ")]
    if lines != step.printed():
        verdict.wrong("torn_logs", f"{where}: {folder} has {len(lines)} of {len(step.printed())} lines")


def _by_policy(
    job: ChaosJob, step: ChaosStep, attempts: Sequence[Mapping[str, Any]], states: Mapping[str, str]
) -> str:
    """What a step whose attempts may have been killed must be, by how its last one ended."""
    if any(states[n] != "SUCCEEDED" for n in step.needs):
        return "SKIPPED"
    if not attempts:
        return "an attempt at least"
    last = attempts[-1]
    if last["reason"] == "exit_code" and last["code"] == 0:
        return "SUCCEEDED"
    if len(attempts) < job.attempts:
        return f"tried {job.attempts} times"
    return "LOST" if last["reason"] == "host_lost" else "FAILED"


def _judge_talks(
    house: LiveHome,
    jobs: Mapping[str, ChaosJob],
    visible: Mapping[str, int],
    verdict: Verdict,
    *,
    disturbed: bool,
) -> None:
    """What the commands said while they lived must be true afterwards."""
    asked = {r[0] for r in house.rows("SELECT id FROM runs WHERE stop = 1")}
    for talk in house.talks:
        err = talk.err.read_text(encoding="utf-8", errors="replace")[-1000:]
        line = f"`runner {' '.join(talk.args)}`"
        if "Traceback" in err:
            verdict.wrong("other", f"{line} says {err}")
        run = talk.run()
        if talk.args[0] == "submit" and run and visible.get(str(talk.job)) != run:
            verdict.wrong(
                "lost", f"{line} has acknowledged run {run} of {talk.job}: {visible.get(str(talk.job))}"
            )
        if talk.killed:
            continue
        if talk.args[0] == "stop" and not talk.process.returncode and "already" not in talk.said:
            number = int(talk.said.split()[1])
            if number not in asked:
                verdict.wrong("lost", f"{line} said {talk.said!r}, and nobody remembers")
        if talk.args[0] == "submit" and (run in asked or (disturbed and run)):
            continue
        code = jobs[str(talk.job)].code() if talk.args[1:2] in (("--wait",), ("--follow",)) else 0
        nothing = talk.process.returncode == 4 and "there are no runs yet" in err
        if talk.process.returncode != code and not nothing:
            verdict.wrong(
                "wrong_codes", f"{line} ended with {talk.process.returncode}, must be {code}: {err}"
            )
        if talk.args[1:2] == ("--follow",):
            _judge_followed(talk.said, line, jobs[str(talk.job)], verdict)


def _judge_followed(said: str, line: str, job: ChaosJob, verdict: Verdict) -> None:
    for step in job.steps:
        if job.states()[step.name] == "SKIPPED":
            continue
        wanted = step.printed() * len(step.ends(job.attempts)[1])
        shown = [t[t.index(step.token) :] for t in said.splitlines() if f"{step.token} " in t]
        if shown != wanted:
            verdict.wrong("torn_logs", f"{line} showed {len(shown)} of {len(wanted)} lines of {step.name}")


def _judge_ports(ledger: Mapping[str, list[Try]], verdict: Verdict) -> None:
    """No port at two steps at the same time; a try without an end may have ended at its last sign."""
    taken: dict[str, list[Try]] = {}
    for tries in ledger.values():
        for one in tries:
            if one.port != "none":
                taken.setdefault(one.port, []).append(one)
    for port, users in taken.items():
        users.sort(key=lambda t: t.began)
        for one, later in pairwise(users):
            if later.began < (one.ended or one.began):
                verdict.wrong("other", f"port {port} was leased twice at once: {one}, {later}")


def _judge_remains(house: LiveHome, rows: set[int], verdict: Verdict) -> None:
    if not wait_for(lambda: not house.processes(), 30, 0.1):
        verdict.wrong("other", f"processes are left: {house.processes()}")
    if left := house.rows("SELECT * FROM leases"):
        verdict.wrong("other", f"leases are left: {left}")
    if held := house.held():
        verdict.wrong("other", f"files in memory are left: {[str(p) for p in held]}")
    acknowledged = {t.run() for t in house.talks if t.args[0] == "submit"}
    for folder in (house.home / "runs").iterdir():
        if int(folder.name) not in rows and int(folder.name) in acknowledged:
            verdict.wrong("lost", f"{folder} has no row")
    log = house.home / "agent.log"
    if log.exists() and "Traceback" in log.read_text(encoding="utf-8"):
        verdict.wrong("other", f"the agent died of {log.read_text(encoding='utf-8')[-3000:]}")
