#!/usr/bin/env bash
# The checks that need a CUDA GPU, in under 10 minutes: the tests marked `gpu`, then where a round's time goes.
#
#   scripts/gpu_check.sh             on a machine with a GPU, python3 with pip, and a package index
#   scripts/gpu_check.sh --tiny      the second part at toy size on the CPU; nothing is set up
#
# Which Python is used, and what is installed: see gpu_setup.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/gpu_setup.sh

if [ "${1:-}" = "--tiny" ]; then
  exec "$python" -m benchmarks.gpu_round --tiny
fi
[ $# -eq 0 ] || fail "unknown argument '$1' (there is --tiny)"
set_up

status=0
timeout 240 "$python" -m pytest -m gpu tests/gpu || status=$?
timeout 240 "$python" -m benchmarks.gpu_round || status=$?
exit $status
