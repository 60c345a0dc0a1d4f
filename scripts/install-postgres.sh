#!/bin/sh
# Makes sure that the server programs of PostgreSQL 15 or newer are on this machine, for
# `make run` and `make test`. Present: says nothing and takes a moment. Missing: installs
# them on Debian and Ubuntu when we are root, else prints the one command and exits 1.
# No server is started and no database is made: Posthorn runs its own.
set -eu

minimum=15
home=$(cd "$(dirname "$0")/.." && pwd)

# usable DIR: postgres and initdb are there, of a version that will do.
usable() {
	[ -x "$1/postgres" ] && [ -x "$1/initdb" ] || return 1
	major=$("$1/postgres" --version 2>/dev/null | sed -n 's/.*(PostgreSQL) \([0-9]*\).*/\1/p')
	[ -n "$major" ] && [ "$major" -ge "$minimum" ]
}

# The places of internal/embedpg/find_places.go.
present() {
	if [ -n "${POSTHORN_PG_BIN:-}" ]; then
		usable "$POSTHORN_PG_BIN"
		return
	fi
	for program in postgres pg_ctl; do
		found=$(command -v $program 2>/dev/null) || continue
		found=$(readlink -f "$found" 2>/dev/null || echo "$found")
		if usable "$(dirname "$found")"; then return 0; fi
	done
	for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/lib/postgresql*/bin /usr/libexec/postgresql* \
		/opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin \
		/Applications/Postgres.app/Contents/Versions/*/bin "$home"/.pg/*/bin; do
		if usable "$dir"; then return 0; fi
	done
	return 1
}

# The one command for this platform, as internal/embedpg prints it.
command_for_platform() {
	if [ "$(uname -s)" = Darwin ]; then
		echo "brew install postgresql@17"
		return
	fi
	sudo=
	[ "$(id -u)" = 0 ] || sudo="sudo "
	if command -v apt-get >/dev/null; then
		echo "${sudo}apt-get install -y postgresql"
	elif command -v dnf >/dev/null; then
		echo "${sudo}dnf install -y postgresql-server"
	elif command -v zypper >/dev/null; then
		echo "${sudo}zypper install -y postgresql-server"
	elif command -v pacman >/dev/null; then
		echo "${sudo}pacman -S --noconfirm postgresql"
	elif command -v apk >/dev/null; then
		echo "${sudo}apk add postgresql"
	else
		echo "make pg VERSION=17"
	fi
}

if present; then exit 0; fi

if [ -n "${POSTHORN_PG_BIN:-}" ]; then
	echo "POSTHORN_PG_BIN=$POSTHORN_PG_BIN has no programs of PostgreSQL $minimum or newer" >&2
	exit 1
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "PostgreSQL $minimum or newer is needed. Install it with:" >&2
	echo "  $(command_for_platform)" >&2
	exit 1
fi

echo "installing PostgreSQL with apt-get" >&2
# Debian makes and starts a cluster "main" at installation, unless told otherwise. Where
# postgresql-common is already there, somebody has made up their mind: leave it alone. A
# file of our own, taken away afterwards, cannot collide with the package's.
quiet=
if ! dpkg-query -W -f='${Status}' postgresql-common 2>/dev/null | grep -q 'ok installed'; then
	quiet=/etc/postgresql-common/createcluster.d/posthorn-no-main.conf
	mkdir -p "$(dirname "$quiet")"
	echo "create_main_cluster = false" >"$quiet"
	trap 'rm -f "$quiet"' EXIT
	trap 'exit 1' HUP INT TERM
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update >&2
apt-get install -y --no-install-recommends postgresql >&2

if ! present; then
	echo "this system's own PostgreSQL is older than $minimum; fetch one for the project: make pg VERSION=17" >&2
	exit 1
fi
