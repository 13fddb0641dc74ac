# SPDX-License-Identifier: GPL-2.0
#
# Debian's packages unpacked into a folder, and their programs made to run there, on any
# host and by any user. For `source` from the project's root.

# shellcheck shell=bash
libdir=usr/lib/x86_64-linux-gnu

# unpack SUITE DIR PACKAGE...: these and what they depend on, in DIR/root; in DIR/packages
# their files, with SHA-256.
unpack() {
	local suite=$1 dir=$2 name deb link
	shift 2
	mkdir -p "$dir/debs"
	scripts/download -d "$suite" "$dir/debs" "$@"
	(cd "$dir/debs" && sha256sum -- *.deb) >"$dir/packages"

	# As Debian has it since 12: /bin is /usr/bin, and so on.
	for name in bin sbin lib lib64; do
		mkdir -p "$dir/root/usr/$name"
		ln -s "usr/$name" "$dir/root/$name"
	done
	for deb in "$dir"/debs/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$dir/root"
		rm "$deb"
	done
	rmdir "$dir/debs"
	find "$dir/root/usr/share" -mindepth 1 -maxdepth 1 ! -name qemu ! -name seabios \
		-exec rm -rf {} +
	# A link must not lead to the host's files.
	find "$dir/root" -type l -lname '/*' | while read -r link; do
		ln -srfn "$dir/root$(readlink "$link")" "$link"
	done
}

# wrap DIR NAME PATH [ARGUMENT...]: DIR/bin/NAME runs PATH of DIR/root, wherever these have
# been moved to. NAME=VALUE among the arguments is for its environment.
wrap() {
	local dir=$1 name=$2 path=$3 word above=.. arguments=
	shift 3
	[[ $name != */* ]] || above=../..
	mkdir -p "$(dirname "$dir/bin/$name")"
	{
		echo '#!/bin/sh'
		echo "root=\${0%/*}/$above/root"
		for word in "$@"; do
			if [[ $word == [A-Z]*=* ]]; then
				echo "export ${word%%=*}=\"${word#*=}\""
			else
				arguments+=" \"$word\""
			fi
		done
		echo "exec \"\$root/$libdir/ld-linux-x86-64.so.2\" --library-path \"\$root/$libdir\"" \
			"--argv0 \"\$root/$path\" \"\$root/$path\"$arguments \"\$@\""
	} >"$dir/bin/$name"
	chmod 755 "$dir/bin/$name"
}

# wrap_gcc DIR VERSION LIBEXEC: the compiler and what Kbuild wants beside it, by the names
# that it wants. GCC finds the programs that it calls beside its own wrapper.
wrap_gcc() {
	local dir=$1 version=$2 name
	# shellcheck disable=SC2016 # for the wrapper
	wrap "$dir" "gcc-$version" "usr/bin/gcc-$version" '--sysroot=$root' '-B${0%/*}/'
	for name in cc1 collect2; do
		wrap "$dir" $name "$3/gcc/x86_64-linux-gnu/$version/$name"
	done
	for name in ar as ld ld.bfd nm objcopy objdump readelf strip; do
		wrap "$dir" $name usr/bin/x86_64-linux-gnu-$name
	done
}
