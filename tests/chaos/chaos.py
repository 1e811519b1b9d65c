"""Kill the runner at random moments, over real runs, and prove that nothing was lost and nothing done twice.

    python tests/chaos/chaos.py --seed 7 --kills 200 --runs 40 --seconds 240

The seed reproduces the plan of choices: the jobs, the commands, who is killed, after what, with which delay.
With `--entry` the supervisors of attempts are killed, with `--outage` all processes at once, and files
are damaged.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from judge import Verdict, judge
from livehome import LiveHome, cleared
from outage import Outage
from storm import Storm
from widowed import Widowed


def main() -> int:
    """Run the chosen kind of chaos, print the summary, and 1 when any promise was broken."""
    asked = _arguments()
    base = Path(tempfile.mkdtemp(prefix="混沌 chaos ", dir=asked.dir))
    begun = time.monotonic()
    with cleared(LiveHome(base)) as house:
        chaos: Storm | Widowed | Outage
        kind = Widowed if asked.entry else Outage if asked.outage else Storm
        chaos = kind(house, asked.seed)
        chaos.rage(asked.kills, asked.runs, asked.seconds)
        verdict = judge(house, chaos.jobs, disturbed=kind is not Storm)
        if isinstance(chaos, Outage):
            chaos.judge(verdict)
    if chaos.kills.total() < asked.kills:
        verdict.wrong("other", f"only {chaos.kills.total()} of {asked.kills} kills in {asked.seconds:g} s")
    summary = _summary(asked.seed, chaos.kills, verdict, time.monotonic() - begun)
    print(json.dumps(summary))
    for line in verdict.evidence:
        print(line, file=sys.stderr)
    if verdict.evidence or asked.keep:
        print(f"all of it is in {base}", file=sys.stderr)
    else:
        shutil.rmtree(base)
    return 1 if verdict.evidence else 0


def _summary(seed: int, kills: dict[str, int], verdict: Verdict, seconds: float) -> dict[str, Any]:
    wrongs = ("lost", "doubled", "wrong_codes", "wrong_states", "torn_logs", "other")
    counts = {w: verdict.counts[w] for w in wrongs}
    whole = {"seed": seed, "kills": dict(kills), "runs": verdict.runs, "steps": verdict.steps}
    return {**whole, **counts, "seconds": round(seconds, 1)}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--runs", type=int, default=40, help="how many submits at least")
    parser.add_argument("--seconds", type=float, default=240, help="the longest time for the kills")
    parser.add_argument("--entry", action="store_true", help="kill the supervisors of attempts")
    parser.add_argument("--outage", action="store_true", help="kill everything at once, and damage files")
    parser.add_argument("--dir", type=Path, help="where the state folder is made")
    parser.add_argument("--keep", action="store_true", help="leave the state folder behind")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
