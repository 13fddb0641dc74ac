# SPDX-License-Identifier: GPL-2.0
define KernelPackage
$(eval $(KernelPackage/$(1)))
all: kmod-$(1)
kmod-$(1): build
	$(INSTALL_DIR) $(OUT)/kmod-$(1)
	$(INSTALL_DATA) $(FILES) $(OUT)/kmod-$(1)
endef
