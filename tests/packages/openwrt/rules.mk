# SPDX-License-Identifier: GPL-2.0
#
# These files stand in for OpenWrt's build system, of which Debian has nothing, as far as
# packaging/openwrt/Makefile uses it: what it builds with the compiler for musl, and for
# the kernel headers LINUX_DIR with CROSS, is installed in OUT.

all:
.PHONY: all build

INSTALL_DIR	:= install -d
INSTALL_DATA	:= install -m 644
CP		:= cp -fpR
PKG_BUILD_DIR	 = $(OUT)/build
TARGET_CFLAGS	:= -Os -pipe -Werror
TARGET_LDFLAGS	:= -Wl,-z,now
# The last two are for the headers linux/ and asm/.
TARGET_CONFIGURE_OPTS := CC="musl-gcc -idirafter /usr/include -idirafter /usr/include/$(shell gcc -print-multiarch)"
KERNEL_MAKE	 = $(MAKE) -C $(LINUX_DIR) CROSS_COMPILE=$(CROSS)
