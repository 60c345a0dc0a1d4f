#!/bin/sh
# Makes sure that pgbouncer is on this machine for `make test`, which puts it before its
# database to show how Posthorn works behind a transaction pooler. Missing: installs it on
# Debian and Ubuntu when we are root, else says so; the tests that need it are skipped then.
set -eu

if command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ]; then exit 0; fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "pgbouncer is missing: tests that need it are skipped (sudo apt-get install -y pgbouncer)" >&2
	exit 0
fi
echo "installing pgbouncer with apt-get" >&2
# The package would start a service of its own: Debian asks this program whether it may.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	printf '#!/bin/sh\nexit 101\n' >$policy
	chmod 755 $policy
	trap 'rm -f $policy' EXIT
	trap 'exit 1' HUP INT TERM
fi
export DEBIAN_FRONTEND=noninteractive
{ apt-get update && apt-get install -y --no-install-recommends pgbouncer; } >&2 ||
	echo "pgbouncer could not be installed: tests that need it are skipped" >&2
