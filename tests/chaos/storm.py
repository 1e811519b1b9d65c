"""Kills the CLI, the agent or both at random moments while runs are submitted, stopped and looked at."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from chaosjobs import ChaosJob, random_job
from livehome import LiveHome, Talk, wait_for

_MOST_WAITING = 6
_LOOKS = (("ps",), ("show",), ("ps", "--all"), ("show", "--json"))


@dataclass(frozen=True)
class Act:
    """One kill: of whom, after what, how long after it, and beside which command."""

    victim: str  # cli, agent, both
    after: str
    delay: float
    command: str  # submit, stop, look
    how: str  # of a submit
    choice: float  # which run is stopped, which look is taken

    @classmethod
    def of(cls, seed: int, number: int, *, submits: bool) -> Act:
        """The act of this number: the same for the same seed, whatever happens in between."""
        rng = random.Random(f"{seed}/act/{number}")
        victim = rng.choices(("cli", "agent", "both"), (35, 50, 15))[0]
        command = "submit" if submits else rng.choices(("look", "stop"), (80, 20))[0]
        kind = "agent" if victim != "cli" else "submit" if submits else "other"
        after, longest = rng.choice(_AFTER[kind])
        how = rng.choices(("--detach", "--wait", "--follow"), (60, 25, 15))[0]
        if after == "answer":
            how = rng.choice(("--wait", "--follow"))
        return cls(victim, after, rng.uniform(0, longest), command, how, rng.random())


_AFTER = {  # what is waited for, and the longest delay after it
    "submit": (("start", 0.6), ("folder", 0.02), ("folder", 0.06), ("folder", 0.2), ("answer", 1.0)),
    "other": (("start", 0.15), ("start", 0.5)),
    "agent": (("start", 1.2), ("lock", 0.04), ("ledger", 0.02), ("story", 0.03), ("story", 0.01)),
}


class Storm:
    """Works through the acts until there were enough kills and enough submits."""

    def __init__(self, house: LiveHome, seed: int) -> None:
        self.jobs: dict[str, ChaosJob] = {}
        self.kills: Counter[str] = Counter(cli=0, agent=0, both=0)
        self._house = house
        self._seed = seed

    def rage(self, kills: int, runs: int, seconds: float) -> None:
        """At most so long; submits are spread over the kills, and one more is made when no agent works."""
        until = time.monotonic() + seconds
        number = 0
        while time.monotonic() < until and (self.kills.total() < kills or len(self.jobs) < runs):
            due = runs if self.kills.total() >= kills else runs * (self.kills.total() + 1) / kills
            idle = self._house.agent() is None
            self._play(Act.of(self._seed, number, submits=len(self.jobs) < due or idle))
            number += 1

    def _play(self, act: Act) -> None:
        house = self._house
        waits = self._what(act, None)
        talk = self._begin(act)
        if talk is not None and act.victim == "cli":
            waits = self._what(act, talk)
        wait_for(waits, 1.5)
        time.sleep(act.delay)
        if act.victim == "cli":
            self.kills["cli"] += talk is not None and talk.kill()
        elif house.kill_agent():
            self.kills[act.victim] += 1
            if act.victim == "both":
                for one in house.talks:
                    one.kill()

    def _what(self, act: Act, talk: Talk | None) -> Callable[[], object]:
        house = self._house
        match act.after:
            case "folder" if talk is not None:
                return lambda: not talk.alive or self._folder(talk)
            case "answer" if talk is not None:
                return lambda: not talk.alive or talk.run()
            case "lock":
                return lambda: house.agent() is not None
            case "ledger":
                size = house.ledger.stat().st_size
                return lambda: house.ledger.stat().st_size != size
            case "story":
                told = house.story_size()
                return lambda: house.story_size() != told
        return lambda: True

    def _folder(self, talk: Talk) -> bool:
        """Whether a submit has begun to write."""
        runs = self._house.home / "runs"
        newest = max(runs.iterdir(), default=None) if runs.is_dir() else None
        return newest is not None and newest.stat().st_ctime >= talk.out.stat().st_ctime

    def _begin(self, act: Act) -> Talk | None:
        house = self._house
        if act.command == "submit":
            number = len(self.jobs) + 1
            job = random_job(random.Random(f"{self._seed}/job/{number}"), number)
            self.jobs[job.name] = job
            path = job.write(house.base / "作业 jobs" / job.name, house.ledger)
            crowd = sum(t.alive for t in house.talks) >= _MOST_WAITING
            return house.start("submit", "--detach" if crowd else act.how, str(path), job=job.name)
        known = [r for t in house.talks if t.args[0] == "submit" and (r := t.run())][-4:]
        if act.command == "stop" and known:
            more = ["--no-wait"] if act.choice < 0.5 else []
            return house.start("stop", *more, str(known[int(act.choice * len(known))]))
        return house.start(*_LOOKS[int(act.choice * len(_LOOKS))])
