#!/bin/sh
# Supervise one attempt where there is no Python: sh entry.sh ATTEMPT_DIR
#
# It reads attempt.sh and writes the same records as the Python `entry`. It needs /proc and the programs date, grep,
# ln, mv, sleep, tail, tr (busybox has them), and it is the weaker one:
# - no READY and no secrets: an attempt with either is refused; no oom, no codes of ranks, no fsync of records;
# - it is no child subreaper: it knows its processes by ASCEND_RUNNER_ATTEMPT in their environment, and does not see
#   one that has cleared or overwritten its own;
# - without LOCAL_RANK it sends TERM to the command itself, not to the program behind a wrapper;
# - it looks twice a second, and its times are whole seconds;
# - as in any shell, a program that exits with 125 to 127 or 128+n looks as if it was not started, or died of n.
set -u
[ $# = 1 ] || { echo "usage: sh entry.sh ATTEMPT_DIR" >&2; exit 2; }
case $1 in /*) DIR=$1 ;; *) DIR=$PWD/$1 ;; esac
MAIN=0 ASKED=0 HURRIED='' REASON='' MESSAGE='stopped early' TERM_AT='' KILL_AT='' CODE=0 SIGNAL=null
COMMAND_RECORDS='' STOP_RECORD=null KILLED='' now=0 LOG=/dev/null
trap 'ASKED=$((ASKED + 1))' TERM INT && trap : HUP

record() { # NAME MEMBERS: there whole or not at all
  printf '{"schema": "%s/1", %s}\n' "$1" "$2" >"$DIR/.$1.$$.part" && mv "$DIR/.$1.$$.part" "$DIR/$1.json"
}

say() { printf '[entry] %s\n' "$1" 2>/dev/null >>"$LOG"; }

clock() { read -r now _ </proc/uptime && now=${now%.*}; }

alive() { # PID: still running, not a zombie
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  case ${stat##*) } in Z* | X*) return 1 ;; esac
}

has() { # PID PATTERN: a line of its environment
  { tr '\0' '\n' <"/proc/$1/environ" | grep -q -- "$2"; } 2>/dev/null
}

tree() { # the attempt's living processes
  alive "$MAIN" && echo "$MAIN"
  tail -v -n +1 /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep -F -e '==> /proc/' -e "$MARK" |
    while read -r line; do
      case $line in
        '==> /proc/'*) pid=${line#==> /proc/} pid=${pid%%/*} ;;
        "$MARK") [ "$pid" = "$MAIN" ] || echo "$pid" ;;
      esac
    done
}

chosen() { # who is asked to stop: the topmost ranks, else the command, else all that is left
  found=''
  if [ "$STOP" = ranks ]; then
    for pid in $1; do
      { read -r stat <"/proc/$pid/stat"; } 2>/dev/null || continue
      rest=${stat##*) } parent=${rest#* } parent=${parent%% *}
      has "$pid" '^LOCAL_RANK=' && ! has "$parent" '^LOCAL_RANK=' && found="$found $pid"
    done
    [ -n "$found" ] || ! alive "$MAIN" || found=$MAIN
  fi
  echo "${found:-$1}"
}

stop() { # REASON MESSAGE BY
  REASON=$1 MESSAGE=$2 TERM_AT=$now KILL_AT='' PATIENCE=$GRACE
  say "stop: $2; grace $GRACE s"
  record stopping "\"reason\": \"$1\", \"message\": \"$2\", \"grace_s\": $GRACE, \"time\": $(date +%s)"
  STOP_RECORD="\"by\": \"$3\", \"at\": $(date +%s)"
}

act() { # what is due now
  if [ -z "$REASON" ] && [ "$ASKED" -gt 0 ]; then stop user 'stopped by SIGTERM' signal; fi
  if [ -z "$REASON" ] && [ -n "$TIMEOUT" ] && [ $((now - BEGUN)) -ge "$TIMEOUT" ]; then
    stop timeout "ran longer than $TIMEOUT s" timeout
  fi
  if [ "$ASKED" -gt 1 ] && [ -z "$HURRIED" ]; then
    HURRIED=yes KILL_AT=$now && say 'SIGTERM again: no more grace'
  fi
  if [ -n "$KILL_AT" ] && [ "$now" -ge "$KILL_AT" ]; then
    left=$(tree)
    say "KILL: $(echo $left)"
    for pid in $left; do
      kill -KILL "$pid" 2>/dev/null
      case ",$KILLED," in *",$pid,"*) ;; *) KILLED=${KILLED:+$KILLED,}$pid ;; esac
    done
  elif [ -n "$TERM_AT" ] && [ "$now" -ge "$TERM_AT" ]; then
    left=$(chosen "$(tree)")
    say "TERM to $(echo $left)"
    for pid in $left; do kill -TERM "$pid" 2>/dev/null; done
    TERM_AT='' KILL_AT=${KILL_AT:-$((now + PATIENCE))}
  fi
}

run() { # NUMBER: one command, until nothing of it is left
  eval "name=\$NAME_$1 line=\$LINE_$1"
  say "$line"
  begun=$(date +%s) over='' TERM_AT='' KILL_AT=''
  (trap - TERM INT HUP && set +u && environment && "command_$1") </dev/null >>"$LOG" 2>&1 &
  MAIN=$!
  while alive "$MAIN" || [ -n "$(tree)" ]; do
    clock
    if [ -z "$over" ] && ! alive "$MAIN"; then
      over=$(date +%s) TERM_AT=$now
      [ -n "$REASON" ] || { TERM_AT=$((now + LINGER)) PATIENCE=5; }
    fi
    act
    sleep 0.5 2>/dev/null || sleep 1
  done
  wait "$MAIN"
  CODE=$? SIGNAL=null how="ended with code $CODE" kind=exit_code
  if [ "$CODE" -gt 128 ] && [ "$CODE" -le 192 ]; then
    SIGNAL=$((CODE - 128)) how="died of signal $((CODE - 128))" kind=signal
  elif [ "$CODE" -ge 125 ] && [ "$CODE" -le 127 ]; then
    kind=entry_error how='could not be started; the log says more'
  fi
  [ -n "$REASON" ] || { KIND=$kind MESSAGE="$name: $how"; }
  one="{\"name\": \"$name\", \"code\": $CODE, \"signal\": $SIGNAL, \"started\": $begun, \"ended\": ${over:-$(date +%s)}}"
  COMMAND_RECORDS=${COMMAND_RECORDS:+$COMMAND_RECORDS, }$one
}

finish() { # REASON: write exit.json and end
  say "end: $1: $MESSAGE"
  [ "$STOP_RECORD" = null ] || STOP_RECORD="{$STOP_RECORD, \"killed\": [$KILLED]}"
  record exit "\"reason\": \"$1\", \"code\": $CODE, \"signal\": $SIGNAL, \"ranks\": {}, \"message\": \"$MESSAGE\", \
\"commands\": [$COMMAND_RECORDS], \"started\": $STARTED, \"ended\": $(date +%s), \"oom\": false, \"stop\": $STOP_RECORD"
  case $1 in user) exit 130 ;; timeout) exit 124 ;; esac
  exit "$CODE"
}

refuse() { CODE=125 MESSAGE=$1 && finish entry_error; }

read -r stat <"/proc/$$/stat" && read -r boot </proc/sys/kernel/random/boot_id
STARTED=$(date +%s)
ticks=$(set -- ${stat##*) } && echo "${20}")
part="$DIR/.started.$$.part"
printf '{"schema": "started/1", "pid": %s, "start_ticks": %s, "boot_id": "%s", "time": %s}\n' \
  "$$" "$ticks" "$boot" "$STARTED" >"$part" || exit 125
ln "$part" "$DIR/started.json" 2>/dev/null || { rm -f "$part"; echo "$DIR: was started before" >&2; exit 125; }
rm -f "$part"
[ -r "$DIR/attempt.sh" ] || refuse 'attempt.sh: no such file, or not readable'
. "$DIR/attempt.sh"
case $LOG in /*) ;; *) LOG=$DIR/$LOG ;; esac
MARK="ASCEND_RUNNER_ATTEMPT=$ID"
clock && BEGUN=$now
{ true >>"$LOG"; } 2>/dev/null || { LOG=/dev/null && refuse 'the log cannot be written'; }
[ -z "$REFUSED" ] || refuse "$REFUSED"
cd "$CWD" 2>/dev/null || refuse 'cwd: no such folder'
number=0 KIND=exit_code
while [ "$number" -lt "$COMMANDS" ] && [ "$CODE" = 0 ] && clock && act && [ -z "$REASON" ]; do
  number=$((number + 1))
  run "$number"
done
finish "${REASON:-$KIND}"
