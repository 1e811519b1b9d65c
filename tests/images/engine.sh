#!/usr/bin/env bash
# engine.sh FOLDER: start a docker engine of our own in FOLDER, with the image `base:bookworm` made by debootstrap,
# and print the address for DOCKER_HOST. Needs root, docker.io and debootstrap. Stop it: kill $(cat FOLDER/pid).
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
export DOCKER_HOST=unix://$folder/sock
docker=${RUNNER_DOCKER:-/usr/bin/docker}

if ! "$docker" version >/dev/null 2>&1; then
  rm -rf "$folder/exec" "$folder/pid" "$folder/sock"
  setsid dockerd --data-root "$folder/data" --exec-root "$folder/exec" --pidfile "$folder/pid" -H "$DOCKER_HOST" \
    --bridge none --iptables=false \
    </dev/null >"$folder/log" 2>&1 &
  for _ in $(seq 100); do
    "$docker" version >/dev/null 2>&1 && break
    sleep 0.2
  done
  "$docker" version >/dev/null || { tail "$folder/log" >&2; exit 1; }
fi

if ! "$docker" image inspect base:bookworm >/dev/null 2>&1; then
  root=$(mktemp -d "$folder/root.XXXXXX")
  trap 'rm -rf "$root"' EXIT
  # what the images install anyway: the tests are about the packages of the stack, not about Debian's
  debootstrap --variant=minbase --include=ca-certificates,git,python3,python3-venv bookworm "$root" >"$folder/debootstrap.log"
  cp -a /etc/apt/sources.list* "$root/etc/apt/" 2>/dev/null || true # from where this machine takes its own
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/*
  tar -C "$root" -c . | "$docker" import --change 'CMD ["bash"]' - base:bookworm >/dev/null
fi
echo "$DOCKER_HOST"
