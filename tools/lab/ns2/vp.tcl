# SPDX-License-Identifier: GPL-2.0
# [VPS02] 4.1.1: kb/s of payload that TFRC sends with large and with small
# packets while packets are lost with p. ns-2 has no virtual packets: small
# ones are counted as large ones are.
source [file join [file dirname [info script]] common.tcl]
options {flows 10 rtt 0.1 p 0.03 large 1000 small 100 rto 0}
simulator
foreach name {large small} {
	lassign [lossy_path $given(rtt) $given(p)] from to
	set bytes($name) $given($name)
	for {set i 0} {$i < $given(flows)} {incr i} {
		set tfrc [new Agent/TFRC]
		$tfrc set packetSize_ $given($name)
		$tfrc set useHeaders_ false
		$tfrc set minrto_ $given(rto)
		connect $from $tfrc $to [new Agent/TFRCSink]
		start $tfrc
		lappend agents($name) $tfrc
	}
}
run
