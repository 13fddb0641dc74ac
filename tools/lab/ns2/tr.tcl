# SPDX-License-Identifier: GPL-2.0
# [TRANS00] 3: standard deviation over mean of what a flow sends in a round trip,
# while packets are lost with p; a flow's mean. TCP is New Reno, GAIMD the same with
# 0.31 and 0.875. overhead is what ns-2's TFRC adds to its timer at random, s.
source [file join [file dirname [info script]] common.tcl]
options {flows 2 rtt 0.1 p 0.02 size 1000 overhead 0.001}
simulator

foreach name {tcp gaimd tfrc} {
	lassign [lossy_path $given(rtt) $given(p)] from to
	for {set i 0} {$i < $given(flows)} {incr i} {
		if {$name == "tfrc"} {
			set source [new Agent/TFRC]
			$source set packetSize_ $given(size)
			$source set useHeaders_ false
			$source set overhead_ $given(overhead)
			connect $from $source $to [new Agent/TFRCSink]
			start $source
		} else {
			set source [new Agent/TCP/Newreno]
			$source set packetSize_ $given(size)
			$source set window_ 10000
			$source set minrto_ [expr {4 * $given(rtt)}]
			$source set tcpTick_ 0.01
			if {$name == "gaimd"} {
				$source set increase_num_ 0.31
				$source set decrease_num_ 0.875
			}
			connect $from $source $to [new Agent/TCPSink]
			start [$source attach-app FTP]
		}
		lappend agents($name) $source
	}
}

# What each flow has sent since the last round trip.
proc look {} {
	global agents seen n sum squares ns given
	foreach name [array names agents] {
		foreach agent $agents($name) {
			set packets [$agent set ndatapack_]
			set x [expr {$packets - $seen($agent)}]
			set seen($agent) $packets
			set sum($agent) [expr {$sum($agent) + $x}]
			set squares($agent) [expr {$squares($agent) + $x * $x}]
		}
	}
	incr n
	$ns at [expr {[$ns now] + $given(rtt)}] look
}

proc begin {} {
	global agents seen n sum squares ns given
	foreach name [array names agents] {
		foreach agent $agents($name) {
			set seen($agent) [$agent set ndatapack_]
			set sum($agent) 0
			set squares($agent) 0
		}
	}
	set n 0
	$ns at [expr {[$ns now] + $given(rtt)}] look
}

proc end {} {
	global agents n sum squares
	foreach name [lsort [array names agents]] {
		set cov 0
		foreach agent $agents($name) {
			set mean [expr {double($sum($agent)) / $n}]
			set variance [expr {double($squares($agent)) / $n - $mean * $mean}]
			set cov [expr {$cov + ($mean > 0 ? sqrt($variance) / $mean : 0)}]
		}
		print $name [expr {$cov / [llength $agents($name)]}]
	}
}
run
