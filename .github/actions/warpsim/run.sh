#!/usr/bin/env bash
# Runs $COMMAND on warpsim in each of $SCHEDULES, then prints annotations, writes $SARIF and the job's summary. Fails
# where the command fails, where there is a hazard, and where no kernel ran.
set -uo pipefail

: "${WARPSIM_BIN:=$RUNNER_TEMP/warpsim-venv/bin}"
reports=$(mktemp -d "${RUNNER_TEMP:-/tmp}/warpsim-reports-XXXXXX")
status=0
for schedule in $SCHEDULES; do
    "$WARPSIM_BIN/warpsim" --device "$DEVICE" --schedule "$schedule" --hazards warn \
        --report "$reports/$schedule-%p.json" -- bash -c "$COMMAND" || status=$?
done
"$WARPSIM_BIN/warpsim-report" "$reports" --root "${GITHUB_WORKSPACE:-.}" --annotations --sarif "$SARIF" \
    --summary "${GITHUB_STEP_SUMMARY:-/dev/null}" || status=$?
exit "$status"
