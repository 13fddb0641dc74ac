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

# Where programs, man pages, headers and tc's plugin go; DESTDIR is put before all.
PREFIX ?= /usr
ifneq ($(filter-out /%,$(DESTDIR)),)
$(error DESTDIR has to begin with /: $(DESTDIR))
endif
MODDIR = $(DESTDIR)/lib/modules/$(RELEASE)/updates
MODULES = sch_abe tcp_gaimd dccp dccp_ipv4 dccp_ipv6 dccp_diag dccp_tfrc
HEADERS = kernel/include/uapi/linux/pkt_sch_abe.h ccid/include/uapi/linux/dccp_tfrc.h

# The kernel that the VM boots; see tools/testbed/vm/fetch-kernel.
VM_KERNEL ?= 6.1
# What the VM's files are built with, on any host; see tools/testbed/vm/fetch-userland.
PINNED := $(CURDIR)/build/userland/bin/
# The other kernels that our modules support.
KERNELS ?= 6.1-security 6.12 newest sid

all: modules tc tools

help:
	@echo "make             modules for KDIR, the tc plugin, the tools"
	@echo "make install     modules for KDIR, the tc plugin, voipcall, abemon, man pages, headers; make uninstall"
	@echo "make deb         Debian packages, in build/deb/"
	@echo "make html        Documentation/ as web pages, build/html/index.html; make man: as manual pages"
	@echo "make demo        the demonstration in a VM; results in build/demo/"
	@echo "make lab         the list of experiments; EXP=ID runs one, LAB=--quick the short way"
	@echo "make vm          a shell in the VM, with the modules loaded"
	@echo "make check       the tests that a change has to pass; SUITES='NAME...' for some"
	@echo "make bench       instructions per packet, beside the kernel's qdiscs"
	@echo "make clean       removes what was built, keeps what was downloaded and build/lab"
	@echo "make distclean   removes these, too"
	@echo
	@echo "Longer, for a night; make check-all runs all of them, one after the other:"
	@echo "make check-long  the suites that measure, with all their points, and others that take long"
	@echo "make check-kernels  some tests on the newest 6.1 and 6.12 and two 7.x, which it downloads; KERNELS=, SUITES="
	@echo "make check-packages  the packages in fresh Debian 12 and 13 roots and on their kernels"
	@echo "make check-debug  tests on a kernel with sanitizers (ARCH=um), which it builds; SUITES="
	@echo
	@echo "What a target lacks is installed (as root) or told (to others): scripts/deps -n TARGET"
	@echo "shows them, and the size of the download: on a minimal Debian 12 55 MB for make and 15 for"
	@echo "the kernel's headers, 60 for vm, 125 for the list of experiments, 175 for demo, 180 for lab,"
	@echo "250 for check; and, once, the VM's kernel, its source, QEMU and compilers, 355 MB."

# The sets of scripts/deps.
deps-%:
	@scripts/deps $*

# The VM is what this host builds for its own processor.
vm-host:
	@[ "$$(uname -m)" = x86_64 ] || { \
		echo "The VM is an amd64 one, and its programs are built here: this needs an amd64 host." >&2; \
		echo "On $$(uname -m) there are make and make install." >&2; exit 1; }

deps-vm deps-demo deps-lab deps-check deps-debug: vm-host

headers:
	@test -e "$(KDIR)/Makefile" || [ "$(origin KDIR)" != file ] || \
		scripts/deps all linux-headers-$$(dpkg --print-architecture)

# A rule of its own, so that KDIR is looked for again.
have-kdir: headers
	@test -e "$(KDIR)/Makefile" || { \
		echo "No kernel headers in KDIR=$(KDIR)" >&2; exit 1; }

# The DCCP part: only for kernels that have DCCP; scripts/dccp-source tells why
# when it leaves it out. With QDISC_ONLY=1 nobody asks.
modules: have-kdir deps-all
	@echo "modules for $(KDIR)"
	@dccp=; [ "$(QDISC_ONLY)" ] || dccp=$$(scripts/dccp-source $(KDIR)) || dccp=; \
	scripts/build-modules $(RELEASE) $(KDIR) kernel $${dccp:+dccp=$$dccp ccid}
	@ls build/modules/$(RELEASE)/*.ko

tc: deps-all
	@$(MAKE) -s -C tc

tools: deps-all
	@$(MAKE) -s -C tools/voipcall
	@$(MAKE) -s -C tools/abemon

# What the VM gets: our programs, the plugin and traffic, in build/guest.
guest: deps-vm
	@tools/testbed/vm/fetch-userland
	@$(MAKE) -s -C tc O=$(CURDIR)/build/guest/tc CC=$(PINNED)gcc-12
	@for dir in tools/voipcall tools/abemon tools/testbed/traffic tools/lab/bpf; do \
		$(MAKE) -s -C $$dir BUILD=$(CURDIR)/build/guest CC=$(PINNED)gcc-12 \
			SYSROOT=$(PINNED)../root \
			BPF_CC=$(PINNED)bpf-gcc BPF_OBJCOPY=$(PINNED)bpf-objcopy || exit; \
	done

# And modules for its own kernel.
vm-files: guest
	@tools/testbed/vm/fetch-kernel $(VM_KERNEL)
	@echo "modules for the VM's kernel, $(VM_KERNEL)"
	@kernel=build/kernels/$(VM_KERNEL); dccp=; \
	grep -q '^CONFIG_IP_DCCP=' $$kernel/config && \
		{ dccp=$$(scripts/dccp-source $$kernel/kdir) || exit; }; \
	tools=$(PINNED); [ ! -e $$kernel/tools ] || tools=$$PWD/$$kernel/tools/bin/; \
	scripts/build-modules $(VM_KERNEL) $$kernel/kdir kernel tests/bench tests/fail_split \
		$${dccp:+tests/ccid_dummy dccp=$$dccp ccid} -- CROSS_COMPILE=$$tools

check: deps-check tc tools vm-files
	@tests/check $(SUITES)

check-long: deps-check tc tools vm-files
	@tests/check --long $(SUITES)

bench: vm-files
	@tests/bench/run

# A kernel of tools/testbed/vm/build-kernel, and our modules for it.
kernel-%: deps-debug guest
	@tools/testbed/vm/build-kernel $*
	@dccp=$$(scripts/dccp-source build/kernels/$*/kdir) && \
	scripts/build-modules $* build/kernels/$*/kdir kernel tests/bench \
		tests/ccid_dummy tests/planted dccp=$$dccp ccid -- \
		$(if $(filter um%,$*),ARCH=um) UBSAN_SANITIZE=y GCOV_PROFILE=y

check-debug: vm-files kernel-um-debug
	@tests/check --kernel um-debug $(SUITES)

check-kernels: deps-check
	@SUITES="$(SUITES)" tests/kernels $(KERNELS)

# They need no kernel's headers: DKMS builds the modules where they are installed.
deb: deps-deb
	@scripts/build-deb

check-packages: deps-packages vm-files
	@tests/packages/run

# Whatever fails, the others are run as well.
check-all:
	@failed=; \
	for lane in check bench check-long check-kernels check-packages check-debug; do \
		echo "# make $$lane"; \
		$(MAKE) --no-print-directory $$lane || failed="$$failed $$lane"; \
	done; \
	[ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }

# The pages in Documentation/: build/html/index.html, and build/man/*.7.
html man: deps-html
	@sphinx-build -q -W --keep-going -b $@ -d build/doctrees Documentation build/$@
	@echo "in build/$@/"

demo: deps-demo vm-files
	@tools/demo/run

# One experiment, LAB='--quick' and so on its options; without EXP the list. What is
# no experiment is refused before anything is fetched.
lab: deps-list
	@tools/lab/lab list $(EXP) $(if $(EXP),>/dev/null)
ifdef EXP
	@$(MAKE) -s --no-print-directory deps-lab vm-files
	@tools/lab/lab run $(EXP) $(LAB)
endif

vm: deps-groff-base vm-files
	@tools/testbed/vm/run --kernel $(VM_KERNEL) --interactive --smp 2 -- tools/testbed/vm/shell

# What was built just now, not what is left of a build before. What depmod writes is not
# ours; without a kernel under DESTDIR there is nothing to write.
DEPMOD = [ ! -e $(DESTDIR)/lib/modules/$(RELEASE)/modules.order ] || \
	/sbin/depmod $(if $(DESTDIR),-b $(DESTDIR)) $(RELEASE)

may-install:
	@[ "$(DESTDIR)" ] || [ "$$(id -u)" = 0 ] || { \
		echo "$(PREFIX) and /lib/modules are root's: run this as root, or give a DESTDIR=" >&2; exit 1; }

install: may-install all
	install -d $(MODDIR)
	install -m 644 -t $(MODDIR) \
		$$(sed 's,.*/,build/modules/$(RELEASE)/,; s,\.o$$,.ko,' build/kbuild/$(RELEASE)/modules.order)
	$(DEPMOD)
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/linux $(HEADERS)
	$(MAKE) -C tc install
	$(MAKE) -C tools/voipcall install
	$(MAKE) -C tools/abemon install

# For the same KDIR, or RELEASE where that has gone, DESTDIR and PREFIX. A module in use
# goes on until it is removed.
uninstall: may-install
	@[ "$(RELEASE)" ] || { echo "No kernel headers in KDIR=$(KDIR): name the kernel, RELEASE=..." >&2; exit 1; }
	rm -f $(MODULES:%=$(MODDIR)/%.ko)
	[ ! -d $(MODDIR) ] || rmdir --ignore-fail-on-non-empty $(MODDIR)
	$(DEPMOD)
	rm -f $(patsubst %,$(DESTDIR)$(PREFIX)/include/linux/%,$(notdir $(HEADERS)))
	$(MAKE) -C tc uninstall
	$(MAKE) -C tools/voipcall uninstall
	$(MAKE) -C tools/abemon uninstall

clean:
	@mkdir -p build
	find build -mindepth 1 -maxdepth 1 ! -name kernels ! -name userland ! -name cache \
		! -name lab -exec rm -rf {} +

distclean:
	rm -rf build

# Two installations at once would be in each other's way.
.NOTPARALLEL:

.PHONY: all help vm-host headers have-kdir modules tc tools guest vm-files check \
	check-long check-kernels check-packages check-debug check-all bench deb html man demo lab vm may-install install uninstall clean distclean
