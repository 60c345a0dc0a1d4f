#!/usr/bin/env bash
# Long rounds, for a machine that has the night: every mutant of the lab, random rounds with more seeds, the tests on
# every PostgreSQL, fuzzing. Finished (step, seed) pairs of the same sources are skipped, so a run that was stopped goes
# on where it was; a changed file begins anew. State and logs: evidence/nightly/<hash of the sources>/.
#
#   scripts/nightly.sh                 everything
#   scripts/nightly.sh fuzz [TIME]     the fuzz targets only, without state
#
# SEEDS="1 2 3"  FUZZTIME=5m  VERSIONS="15 16 17 18" may be set.
# What the tests read: POSTHORN_NIGHTLY=1 asks for long rounds, POSTHORN_SEED for a seed, POSTHORN_MUTANTS=all for all
# mutants instead of some by rotation.
set -euo pipefail
cd "$(dirname "$0")/.."

seeds=${SEEDS:-1 2 3}
fuzztime=${FUZZTIME:-5m}
versions=${VERSIONS:-15 16 17 18}

fuzz_all() { # fuzz_all TIME
  local failed=0 file target
  while read -r file; do
    while read -r target; do
      echo "== $target in $(dirname "$file") for $1"
      go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "./$(dirname "$file")" </dev/null || failed=1
    done < <(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file")
  done < <(git ls-files -co --exclude-standard '*_test.go')
  return $failed
}

if [ "${1:-}" = fuzz ]; then
  fuzz_all "${2:-$fuzztime}"
  exit
fi

sources() { # every file of the repository that is there, committed or not
  git ls-files -co --exclude-standard -z | sort -z | while IFS= read -r -d '' f; do
    [ ! -f "$f" ] || sha256sum "$f"
  done
}

state=evidence/nightly/$(sources | sha256sum | cut -c1-16)
mkdir -p "$state"
exec 9>"$state/lock"
flock -n 9 || { echo "another nightly run of these sources is under way"; exit 1; }
echo "nightly: $state"

failed=()
notrun=()

step() { # step NAME SEED COMMAND…
  local name=$1 seed=$2
  shift 2
  local mark=$state/$name.$seed begun=$SECONDS
  if [ -e "$mark.done" ]; then
    echo "-- $name, seed $seed: done before"
    return
  fi
  echo "-- $name, seed $seed: $(date +%T)"
  if POSTHORN_NIGHTLY=1 POSTHORN_SEED=$seed "$@" >"$mark.log" 2>&1 </dev/null 9>&-; then
    mv "$mark.log" "$mark.done"
    echo "   passed in $((SECONDS - begun)) s"
  else
    failed+=("$name, seed $seed: $mark.log")
    echo "   FAILED after $((SECONDS - begun)) s: $mark.log"
    tail -n 20 "$mark.log" | sed 's/^/   | /'
  fi
}

with_pg() { go run ./internal/pgtest/withpg -- "$@"; }

on_version() { # on_version N COMMAND…: server programs of this version come first on PATH
  local bin=$PWD/.pg/$1/bin
  [ -d "$bin" ] || bin=/usr/lib/postgresql/$1/bin
  shift
  PATH=$bin:$PATH POSTHORN_PG_BIN=$bin with_pg "$@"
}

all_mutants() { POSTHORN_MUTANTS=all with_pg go test -count=1 -timeout 4h -run Mutant ./internal/lab/...; }

first=${seeds%% *}
step mutants "$first" all_mutants
for seed in $seeds; do
  step tests "$seed" with_pg go test -race -count=1 -timeout 4h ./...
  step lab "$seed" bin/posthorn lab run --seed "$seed" --rounds 20 --run "nightly-$seed" '*'
done
for v in $versions; do
  if [ ! -d ".pg/$v/bin" ] && [ ! -d "/usr/lib/postgresql/$v/bin" ] && ! scripts/get-postgres.sh "$v" >"$state/pg-$v.get.log" 2>&1; then
    notrun+=("pg-$v: these server programs cannot be had here ($state/pg-$v.get.log)")
    continue
  fi
  step "pg-$v" "$first" on_version "$v" go test -count=1 -timeout 2h ./...
done
step fuzz "$first" fuzz_all "$fuzztime"

for line in "${notrun[@]}"; do echo "NOT_RUN $line"; done
for line in "${failed[@]}"; do echo "FAILED  $line"; done
[ ${#failed[@]} -eq 0 ] || exit 1
echo "nightly: all that could run has passed"
