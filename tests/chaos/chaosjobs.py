"""Random jobs that know how they must end, and write what happened to a ledger that the runner never sees."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECRET = "CHAOS_SECRET"
# One line is one write with O_APPEND. How often it has started, a step reads in the ledger.
SCRIPT = """
tries=$(grep -c "^start $TOKEN " "$LEDGER" || true)
echo "start $TOKEN $$ $(date +%s.%N) $ASCEND_RUNNER_ATTEMPT ${RUNNER_PORTS:-none}" >> "$LEDGER"
set -- $CODES
[ "$tries" -lt $# ] || tries=$(($# - 1))
shift "$tries"
seq -f "$TOKEN a%.0f" "$LINES"
if [ "$BEATS" = yes ]; then
  (while echo "beat $TOKEN 0 0 $ASCEND_RUNNER_ATTEMPT" >> "$LEDGER"; do sleep 0.03; done) & beats=$!
fi
sleep "$NAP"
seq -f "$TOKEN b%.0f" "$LINES"
[ "$BEATS" = no ] || kill "$beats"
echo "end $TOKEN $1 $(date +%s.%N) $ASCEND_RUNNER_ATTEMPT" >> "$LEDGER"
exit "$1"
"""


@dataclass(frozen=True)
class ChaosStep:
    """A step: what it needs, the exit code of each of its tries (the last one repeats), and what it does."""

    name: str
    token: str
    needs: tuple[str, ...]
    codes: tuple[int, ...]
    nap: float
    lines: int
    port: bool
    secret: bool
    beats: bool

    def ends(self, attempts: int) -> tuple[str, list[int]]:
        """The state it must end with, and the codes of its tries, when nothing from outside disturbs them."""
        codes = []
        for i in range(attempts):
            codes.append(self.codes[min(i, len(self.codes) - 1)])
            if codes[-1] == 0:
                return "SUCCEEDED", codes
        return "FAILED", codes

    def printed(self) -> list[str]:
        """The lines that a whole try prints."""
        return [f"{self.token} {part}{i}" for part in "ab" for i in range(1, self.lines + 1)]


@dataclass(frozen=True)
class ChaosJob:
    """A job with its own name, and how it must end."""

    name: str
    steps: tuple[ChaosStep, ...]
    attempts: int
    backoff: float

    def states(self) -> dict[str, str]:
        """The state that each step must have at the end."""
        states: dict[str, str] = {}
        for step in self.steps:
            met = all(states[n] == "SUCCEEDED" for n in step.needs)
            states[step.name] = step.ends(self.attempts)[0] if met else "SKIPPED"
        return states

    def code(self) -> int:
        """What `runner wait` must answer."""
        states = self.states()
        return next((s.ends(self.attempts)[1][-1] for s in self.steps if states[s.name] == "FAILED"), 0)

    def write(self, folder: Path, ledger: Path) -> Path:
        """The job file, in a folder of its own with some files that submit has to copy."""
        folder.mkdir(parents=True)
        for i in range(20):
            (folder / f"data {i}.txt").write_text(f"{self.name} {i}\n" * 50, encoding="utf-8")
        retry = {"attempts": self.attempts, "backoff": self.backoff}
        job = {"name": self.name, "retry": retry, "steps": [_step(s, ledger) for s in self.steps]}
        path = folder / "job 作业.yaml"
        path.write_text(json.dumps(job, ensure_ascii=False, indent=1), encoding="utf-8")
        return path


def random_job(rng: random.Random, number: int, *, beats: bool = False) -> ChaosJob:
    """A pipeline or DAG of one to four steps: short, long, failing, failing at first, with port or secret."""
    attempts = rng.choice((1, 2, 2, 3)) if not beats else 3
    pipeline = rng.random() < 0.5
    steps: list[ChaosStep] = []
    for i in range(rng.randint(1, 4)):
        before = [s.name for s in steps]
        needs = before[-1:] if pipeline else sorted(rng.sample(before, rng.randint(0, len(before))))
        name = f"s{i}"
        steps.append(
            ChaosStep(
                name=name,
                token=f"j{number:03d}.{name}",
                needs=tuple(needs),
                codes=_codes(rng, attempts),
                nap=round(
                    rng.choice((0.05, rng.uniform(0.05, 0.4), rng.uniform(0.4, 1.5), rng.uniform(0.9, 1.5))),
                    3,
                ),
                lines=rng.choice((1, 5, 20, 2000)),
                port=rng.random() < 0.4,
                secret=rng.random() < 0.2,
                beats=beats,
            )
        )
    return ChaosJob(f"j{number:03d}", tuple(steps), attempts, round(rng.uniform(0.05, 0.5), 2))


def _codes(rng: random.Random, attempts: int) -> tuple[int, ...]:
    bad = rng.choice((1, 3, 7, 42))
    lot = rng.random()
    if lot < 0.72 or (attempts == 1 and lot < 0.9):
        return (0,)
    return (bad, 0) if lot < 0.88 else (bad, bad, 0) if lot < 0.93 else (bad,)


def _step(step: ChaosStep, ledger: Path) -> dict[str, Any]:
    env = {
        "TOKEN": step.token,
        "LEDGER": str(ledger),
        "CODES": " ".join(map(str, step.codes)),
        "NAP": str(step.nap),
        "LINES": str(step.lines),
        "BEATS": "yes" if step.beats else "no",
    }
    told: dict[str, Any] = {"name": step.name, "kind": "command", "needs": list(step.needs), "env": env}
    told["grace"] = "5s"
    told["script"] = SCRIPT
    if step.port:
        told["resources"] = {"ports": 1}
    if step.secret:
        told["secrets"] = [SECRET]
        told["script"] = f'[ -n "${SECRET}" ] || exit 99\n{SCRIPT}'
    return told
