# SPDX-License-Identifier: GPL-2.0
# [VPS02] 4.1: kb/s of payload that TFRC sends with large and with small packets
# while packets are lost with p. ns-2 has no virtual packets: small ones are
# counted as large ones are. Losses are independent, or with `half` p goes
# between 1 - swing and 1 + swing of it each so many seconds, or with `tau` slots of
# that time are lost: into the loss state with a * p, out of it with a * (1 - p).
# With `goodput` it is Mb/s that arrive, and TCP is there, too.
source [file join [file dirname [info script]] common.tcl]
options {flows 10 rtt 0.1 p 0.03 large 1000 small 100 rto 0 half 0 swing 0.5 tau 0 a 0.8 goodput 0}
simulator

proc alternate {loss sign} {
	global ns given
	$loss set rate_ [expr {$given(p) * (1 + $sign * $given(swing))}]
	$ns at [expr {[$ns now] + $given(half)}] "alternate $loss [expr {-$sign}]"
}

proc slot {loss} {
	global ns given defaultRNG
	set bad [expr {[$loss set rate_] > 0}]
	set leave [expr {$given(a) * (1 - $given(p))}]
	set bad [expr {[$defaultRNG uniform 0 1] < ($bad ? 1 - $leave : $given(a) * $given(p))}]
	$loss set rate_ $bad
	$ns at [expr {[$ns now] + $given(tau)}] "slot $loss"
}

foreach name [expr {$given(goodput) ? {large small tcp} : {large small}}] {
	lassign [lossy_path $given(rtt) $given(p)] from to
	set loss [[$ns link $from $to] errormodule]
	set dropped($name) [new Agent/LossMonitor]
	$loss drop-target $dropped($name)
	if {$given(half)} { $ns at 0 "alternate $loss -1" }
	if {$given(tau)} { $loss set rate_ 0; $ns at 0 "slot $loss" }
	set bytes($name) [expr {$name == "tcp" ? 1000 : $given($name)}]
	for {set i 0} {$i < $given(flows)} {incr i} {
		if {$name == "tcp"} {
			set source [new Agent/TCP/Sack1]
			$source set packetSize_ 1000
			$source set window_ 10000
			$source set minrto_ 1
			connect $from $source $to [new Agent/TCPSink/Sack1]
			start [$source attach-app FTP]
		} else {
			set source [new Agent/TFRC]
			$source set packetSize_ $given($name)
			$source set useHeaders_ false
			$source set minrto_ $given(rto)
			connect $from $source $to [new Agent/TFRCSink]
			start $source
		}
		lappend agents($name) $source
	}
}

# What TCP sends again does not count.
proc arrived {name} {
	global agents dropped
	if {$name == "tcp"} { return [total $agents(tcp) ack_] }
	return [expr {[total $agents($name) ndatapack_] - [$dropped($name) set npkts_]}]
}

if {$given(goodput)} {
	proc begin {} {
		global agents before
		foreach name [array names agents] { set before($name) [arrived $name] }
	}
	proc end {} {
		global agents before bytes given
		foreach name [lsort [array names agents]] {
			print $name [expr {([arrived $name] - $before($name)) * $bytes($name) * 8 / 1e6 /
				($given(duration) - $given(warmup)) / [llength $agents($name)]}]
		}
	}
}
run
