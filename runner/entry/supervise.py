"""Run one attempt from attempt.json to exit.json."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from .end import oom_kills, sign
from .keeper import Keeper
from .record import record, record_end
from .spec import EntryError, environment, read_spec
from .tree import look

OWN_EXIT = {"timeout": 124, "user": 130, "port_taken": 125, "not_ready": 125}


def main() -> int:
    """Run the attempt in the folder that argv names, and end with its code."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python3 entry ATTEMPT_DIR\n")
        return 2
    folder, begun = Path(sys.argv[1]).absolute(), time.time()
    keeper = Keeper(folder)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    own = {"pid": os.getpid(), "start_ticks": look(os.getpid()).start, "boot_id": boot, "time": begun}
    try:
        record(folder, "started", own, first=True)
    except FileExistsError:
        sys.stderr.write(f"{folder}: was started before; give every attempt a folder of its own\n")
        return 125
    except OSError as error:
        sys.stderr.write(f"{folder}: cannot write started.json: {error.strerror}\n")
        return 125
    before = oom_kills()
    end = attempt(keeper)
    oom = oom_kills() > before
    killed = end["signal"] == 9 or end["code"] == 137 or -9 in end["ranks"].values()
    if oom and killed and end["reason"] in ("exit_code", "signal"):
        end.update(reason="oom", message=f"{end['message']}; the kernel killed for want of memory")
    keeper.say(f"end: {end['reason']}: {end['message']}")
    end.update(commands=keeper.commands, started=begun, ended=time.time(), oom=oom, stop=keeper.stop)
    try:
        record_end(folder, end)
    except OSError as error:
        sys.stderr.write(f"{folder}: cannot write exit.json: {error.strerror}: {json.dumps(end)}\n")
    return int(OWN_EXIT.get(end["reason"], end["code"]))


def attempt(keeper: Keeper) -> dict[str, Any]:
    """Run the commands one after the other and say how it ended."""
    end: dict[str, Any] = {
        "reason": "exit_code",
        "code": 0,
        "signal": None,
        "ranks": {},
        "message": "stopped early",
    }
    try:
        spec = read_spec(keeper.folder)
        keeper.open(spec)
        env = environment(keeper.run, spec)
        if spec["ready"] and not keeper.intent:
            keeper.watch(spec["ready"])
        for command in spec["commands"]:
            if keeper.look_around() or end["code"]:
                break
            done = keeper.run(command["name"], command["argv"], {**env, **command["env"]})
            end.update(code=done["code"], signal=done["signal"], ranks=keeper.ranks)
            how = f"died of {sign(done['signal'])}" if done["signal"] else f"ended with code {done['code']}"
            end.update(reason="signal" if done["signal"] else "exit_code", message=f"{done['name']}: {how}")
    except EntryError as error:
        end.update(reason="entry_error", code=error.code, message=str(error))
    except OSError as error:  # what the kernel refused; a traceback would leave no record
        end.update(reason="entry_error", code=125, message=str(error))
    if keeper.intent:
        end.update(reason=keeper.intent[0], message=keeper.intent[1])
    return end
