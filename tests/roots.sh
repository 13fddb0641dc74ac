# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154 # who sources it sets top and release
#
# For suites that work in fresh Debian roots, to be sourced: $top/$release is the root.

n=0
ok() { # TEXT COMMAND...
	local text=$1
	shift
	n=$((n + 1))
	if "$@"; then echo "ok $n - $text"; else echo "not ok $n - $text"; fi
}

# inside NAME COMMAND...: in the root; its output, and how long it took, as NAME.log.
inside() {
	local name=$1 start=$SECONDS
	shift
	# shellcheck disable=SC2016 # for the shell in there
	unshare --mount --pid --fork --kill-child -- sh -c '
		root=$1
		shift
		mount -t proc proc "$root/proc" && mount -t sysfs -o ro sysfs "$root/sys" &&
		mount --rbind /dev "$root/dev" && mount -t tmpfs tmpfs "$root/run" || exit
		exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
			DEBIAN_FRONTEND=noninteractive "$@"
	' - "${top:?}/${release:?}" "$@" >"$top/$release-$name.log" 2>&1 </dev/null
	local status=$?
	echo "# $release, $name: $((SECONDS - start)) s"
	return $status
}

# make_root WORD...: of mmdebstrap, whose mounts go with it, however it ends.
make_root() {
	rm -rf --one-file-system "${top:?}/${release:?}"
	mkdir -p "$top"
	unshare --mount -- mmdebstrap --quiet --variant=apt "$@" "$release" "$top/$release" >&2
}
