#!/bin/bash
# Runs one task: run_task.sh ROLE COMMAND [ARGUMENT]...
# Gives the command its TF_CONFIG: the index is the last part of the pod's name
# (a StatefulSet counts its pods), the addresses are those of the headless
# services. Needs POD_NAME, NUM_PS and NUM_WORKERS. Without ps there is no chief
# either: worker 0 does its duties.
set -euo pipefail

role=$1
shift
index=0
if [ "$role" != evaluator ]; then
  index=${POD_NAME##*-}
fi

# The addresses of the first $2 tasks of role $1 as a JSON list.
addresses() {
  local list="" i
  for ((i = 0; i < $2; i++)); do
    list+=${list:+,}\"parasol-$1-$i.parasol-$1:2222\"
  done
  echo "[$list]"
}

cluster="\"worker\":$(addresses worker "$NUM_WORKERS")"
if [ "$NUM_PS" -gt 0 ]; then
  cluster+=",\"chief\":$(addresses chief 1)"
  cluster+=",\"ps\":$(addresses ps "$NUM_PS")"
fi
export TF_CONFIG="{\"cluster\":{$cluster},\"task\":{\"type\":\"$role\",\"index\":$index}}"

if [ "$role" = evaluator ]; then
  exec "$@"
fi

# A StatefulSet starts again what has ended, also with exit code 0. So a task
# that is done stays here, idle, until the job is deleted.
trap 'kill -TERM "$!"' TERM INT
"$@" &
child=$!
code=0
wait "$child" || code=$?
# A signal ends the first wait; this one sees the drain to its end.
while kill -0 "$child" 2>/dev/null; do
  code=0
  wait "$child" || code=$?
done
if [ "$code" -ne 0 ]; then
  exit "$code"
fi
echo "$role/$index: the job is complete" >&2
touch /tmp/done
sleep infinity &
wait "$!"
