# SPDX-License-Identifier: GPL-2.0
"""For Sphinx: make html, make man."""

project = "Alternative Best-Effort for Linux"
html_theme = "alabaster"
html_show_copyright = False
html_sidebars = {"**": ["about.html", "navigation.html", "searchbox.html"]}
# The source, the page in the manual, what it is, by nobody in particular, its section.
man_pages = [
    ("sch_abe", "sch_abe", "how the queueing discipline abe works", "", 7),
    ("dccp_tfrc", "dccp_tfrc", "DCCP congestion control for calls", "", 7),
    ("tcp_gaimd", "tcp_gaimd", "TCP congestion control: general AIMD", "", 7),
    ("lab", "abe-lab", "experiments with abe, DCCP and TCP in virtual time", "", 7),
]
