#!/usr/bin/env bash
# Trains a drafter on one large GPU, in under 10 minutes once the packages are there: documents, features,
# training, evaluation.
#
#   scripts/gpu_train.sh                    for the embedded model, starting from shards/
#   scripts/gpu_train.sh --target M         for another one (a hub id, or a folder)
#   scripts/gpu_train.sh --tiny ...         the same steps at toy size, also on a CPU; nothing is set up
#
# --tasks FILE|DIR|bfcl is what `benchmarks.acceptance` asks. All other options go to `xpress-struct train`, behind
# the ones below, and win over them.
#
# $OUT (build/gpu_train/out): for the embedded model eight files under 16 MiB: drafter/ in shards, report.md,
# log.jsonl, and training.tar with the documents that were collected, the plot and acceptance.json.
# $WORK (build/gpu_train): also state.pt and features, to go on from with --resume.
# Which Python is used, and what is installed: see gpu_setup.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/gpu_setup.sh

work="${WORK:-build/gpu_train}"
out="${OUT:-$work/out}"
# What these minutes leave is for loading and evaluation. A GPU takes more blocks of a document in the same launches.
train=(--documents 4000 --collect-minutes 2.5 --steps 2000 --minutes 3 --anchors 64 --max-shard-size 16MB)
acceptance=(--rules greedy --limit 3 --max-new-tokens 96)
target="" tasks="" tiny="" given=()
while [ $# -gt 0 ]; do
  case "$1" in
    --tiny) tiny=1 ;;
    --target | --tasks)
      [ $# -gt 1 ] || fail "$1 needs a value"
      printf -v "${1#--}" %s "$2"
      shift ;;
    --out | --out=* | --target=* | --tasks=*) fail "no $1 here: --target M, --tasks T, and OUT and WORK are known" ;;
    *) given+=("$1") ;;
  esac
  shift
done
if [ -n "$target" ]; then
  train+=(--target "$target" --prompts bfcl made-up)
  acceptance+=(--model "$target" --tasks "${tasks:-bfcl}")
else
  # These documents have the function calls that cannot be made up.
  train+=(--shards shards --prompts made-up)
  acceptance+=(--tasks "${tasks:-shards}")
fi
if [ -n "$tiny" ]; then
  train+=(--documents 2 --steps 2 --anchors 4)
  acceptance+=(--limit 1 --max-new-tokens 8)
else
  set_up
fi

mkdir -p "$work" "$out"
out="$(cd "$out" && pwd)"
bring() {  # what there is, also after a failure
  cd "$work"
  rm -rf "$out/drafter"
  if [ -d drafter ]; then cp -r drafter "$out"; fi
  if [ -f log.jsonl ]; then cp log.jsonl "$out"; fi
  {
    if [ -f report.md ]; then cat report.md; fi
    if [ -f acceptance.txt ]; then printf '\n## benchmarks.acceptance\n\n```\n%s\n```\n' "$(cat acceptance.txt)"; fi
  } > "$out/report.md"
  local kept=()
  for name in shards acceptance.png acceptance.json; do
    if [ -e "$name" ]; then kept+=("$name"); fi
  done
  tar -cf "$out/training.tar" -T /dev/null "${kept[@]}"
  local large
  large="$(find "$out" -type f -size +16M)"
  [ -z "$large" ] || say "over 16 MiB: $large"
  say "$out has, after $SECONDS s:"
  find "$out" -type f -exec ls -l {} +
}
trap bring EXIT
rm -f "$work"/acceptance.*

SECONDS=0
[ -n "$target" ] || timeout 100 "$python" -m xpress_struct.cli pull
timeout $((450 - SECONDS)) "$python" -m xpress_struct.cli train "${train[@]}" --out "$work" "${given[@]}"
say "trained; $SECONDS s so far"
timeout $((530 - SECONDS)) "$python" -m benchmarks.acceptance "${acceptance[@]}" --drafter "$work/drafter" \
  --out "$work/acceptance.json" | tee "$work/acceptance.txt"
