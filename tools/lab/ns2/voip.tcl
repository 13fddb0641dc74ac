# SPDX-License-Identifier: GPL-2.0
# [VOIP05] 7.1: kb/s with headers that flows of each kind send while packets
# or bytes (unit) are lost, or for ECN marked, with p.
source [file join [file dirname [info script]] common.tcl]
options {
	kinds tcp,ecn,standard,voip flows 10 rtt 0.24 p 0.1 unit pkt size 200 pps 100 rto 0
}

# TCP with Limited Transmit and a window of 100, with ECN also time stamps.
proc tcp {from to kind} {
	set tcp [new Agent/TCP/Sack1]
	$tcp set packetSize_ 1460
	$tcp set window_ 100
	if {$kind eq "ecn"} {
		$tcp set ecn_ 1
		$tcp set timestamps_ true
	}
	connect $from $tcp $to [new Agent/TCPSink/Sack1]
	start [$tcp attach-app FTP]
	return [list $tcp 1500]
}

# A call, whose packets wait while TFRC is slower than they come. rto: what
# t_RTO in the equation is at least; by itself it is TCP's, in ticks of 0.1 s.
proc tfrc {from to kind} {
	global given
	set tfrc [new Agent/TFRC]
	$tfrc set packetSize_ $given(size)
	$tfrc set SndrType_ 1
	$tfrc set minrto_ $given(rto)
	set sink [new Agent/TFRCSink]
	if {$kind eq "voip"} {
		$tfrc set voip_ 1
		$sink set ShortIntervals_ 1
	}
	connect $from $tfrc $to $sink
	set call [new Application/Traffic/CBR]
	$call set packetSize_ $given(size)
	$call set interval_ [expr {1.0 / $given(pps)}]
	$call attach-agent $tfrc
	start $call
	return [list $tfrc [expr {$given(size) + [$tfrc set headersize_]}]]
}

simulator
foreach kind [split $given(kinds) ,] {
	lassign [lossy_path $given(rtt) $given(p) $given(unit) [expr {$kind eq "ecn"}]] from to
	for {set i 0} {$i < $given(flows)} {incr i} {
		lassign [[expr {$kind in {tcp ecn} ? "tcp" : "tfrc"}] $from $to $kind] agent bytes($kind)
		lappend agents($kind) $agent
	}
}
run
