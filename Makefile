# SPDX-License-Identifier: GPL-2.0
#
# The modules are built by kbuild (see Kbuild) out of this tree's way, in
# build/modules/. `make help` lists the targets.

# Kbuild splits paths there, and make its targets.
ifneq ($(words $(subst :, ,$(CURDIR))),1)
$(error The kernel's build system takes no path with blanks or colons; move this directory: $(CURDIR))
endif

# The kernel that `make` and `make install` build for: the running one, or else
# the newest whose headers are installed.
KDIR ?= $(firstword $(wildcard /lib/modules/$(shell uname -r)/build) \
	$(shell ls -d /lib/modules/*/build 2>/dev/null | sort -rV))
# Not what `make kernelrelease` says, which is another with Debian's headers.
RELEASE = $(shell sed 's/.*"\(.*\)"/\1/' $(KDIR)/include/generated/utsrelease.h)

# The kernel that the VM boots; see tests/vm/fetch-kernel.
VM_KERNEL ?= 6.1
# The other kernels that our modules support, and what is tried on them.
KERNELS ?= 6.12
KERNEL_SUITES = test_dccp_negotiation test_dccp_timing test_voipcall test_options \
	test_tree test_colour test_flat

all: modules tc tools

help:
	@echo "make             modules for KDIR, the tc plugin, the tools"
	@echo "make demo        the demonstration in a VM; results in build/demo/"
	@echo "make lab         the experiments; EXP=ID runs one, LAB=--quick the short way"
	@echo "make check       all tests; SUITES='NAME...' for some of them"
	@echo "make bench       instructions per packet, beside the kernel's qdiscs"
	@echo "make check-debug  tests on a kernel with sanitizers (ARCH=um), which it builds; SUITES="
	@echo "make check-kernels  some tests on 6.12 too, which it downloads; KERNELS=, SUITES="
	@echo "make vm          a shell in the VM, with the modules loaded"
	@echo "make install     modules for KDIR, the tc plugin, voipcall, man pages"
	@echo "make clean       removes what was built, keeps what was downloaded and build/lab"

deps-%:
	@scripts/deps $*

headers:
	@test -e "$(KDIR)/Makefile" || [ "$(origin KDIR)" != file ] || \
		scripts/deps build linux-headers-amd64

# A rule of its own, so that KDIR is looked for again.
have-kdir: headers
	@test -e "$(KDIR)/Makefile" || { \
		echo "No kernel headers in KDIR=$(KDIR)" >&2; exit 1; }

# The DCCP part: only for kernels that have DCCP; scripts/dccp-source tells why
# when it leaves it out.
modules: have-kdir deps-build
	@echo "modules for $(KDIR)"
	@dccp=$$(scripts/dccp-source $(KDIR)) || dccp=; \
	scripts/build-modules $(RELEASE) $(KDIR) kernel $${dccp:+dccp=$$dccp ccid}
	@ls build/modules/$(RELEASE)/*.ko

tc: deps-build
	@$(MAKE) -s -C tc

tools: deps-build
	@$(MAKE) -s -C tests/traffic
	@$(MAKE) -s -C tools/voipcall

# What the VM gets: all of the above, for its own kernel.
vm-files: deps-test tc tools
	@$(MAKE) -s -C tools/lab/bpf
	@tests/vm/fetch-kernel $(VM_KERNEL)
	@echo "modules for the VM's kernel, $(VM_KERNEL)"
	@dccp=$$(scripts/dccp-source build/kernels/$(VM_KERNEL)/kdir) && \
	scripts/build-modules $(VM_KERNEL) build/kernels/$(VM_KERNEL)/kdir \
		kernel tests/bench tests/ccid_dummy tests/fail_split dccp=$$dccp ccid

check: vm-files
	@tests/check $(SUITES)

bench: vm-files
	@tests/bench/run

# A kernel of tests/vm/build-kernel, and our modules for it.
kernel-%: deps-debug tc tools
	@tests/vm/build-kernel $*
	@dccp=$$(scripts/dccp-source build/kernels/$*/kdir) && \
	scripts/build-modules $* build/kernels/$*/kdir kernel tests/bench \
		tests/ccid_dummy tests/planted dccp=$$dccp ccid -- \
		$(if $(filter um%,$*),ARCH=um) UBSAN_SANITIZE=y GCOV_PROFILE=y

check-debug: kernel-um-debug
	@tests/check --kernel um-debug $(SUITES)

check-kernels:
	@for kernel in $(KERNELS); do \
		$(MAKE) -s --no-print-directory vm-files VM_KERNEL=$$kernel && \
		tests/check --kernel $$kernel $(or $(SUITES),$(KERNEL_SUITES)) || exit; \
	done

demo: vm-files
	@tools/demo/run

# One experiment, LAB='--quick' and so on its options; without EXP the list.
lab: $(if $(EXP),vm-files,deps-test)
	@tools/lab/lab $(if $(EXP),run $(EXP) $(LAB),list)

vm: vm-files
	@tests/vm/run --kernel $(VM_KERNEL) --interactive --smp 2 -- sh -c 'modprobe sch_abe; exec bash'

install: all
	$(MAKE) -C $(KDIR) M=$(CURDIR)/build/kbuild/$(RELEASE) \
		CONFIG_DEBUG_INFO_BTF_MODULES= CONFIG_MODULE_SIG_ALL= \
		INSTALL_MOD_DIR=updates modules_install
	depmod $(RELEASE)
	$(MAKE) -C tc install
	$(MAKE) -C tools/voipcall install

clean:
	find build -mindepth 1 -maxdepth 1 ! -name kernels ! -name cache \
		! -name lab -exec rm -rf {} +

.PHONY: all help headers have-kdir modules tc tools vm-files check bench check-debug check-kernels demo lab vm install clean
