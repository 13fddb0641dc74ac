# SPDX-License-Identifier: GPL-2.0
define BuildPackage
$(eval $(Package/$(1)))
all: $(1)
$(1): build
$(call Package/$(1)/install,$(OUT)/$(1))
endef

build:
	$(Build/Prepare)
	$(Build/Compile)
