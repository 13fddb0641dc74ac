# SPDX-License-Identifier: GPL-2.0
# [BIAS00] III.A: n New Reno flows with packets of 512 bytes through RED at
# 1.5 Mb/s, whose spacing is uniform, or with `wait` delayed uniform: the
# queue's length, the flows' windows, sampled every 50 ms.
source [file join [file dirname [info script]] common.tcl]
options {n 15 rtt 0.025 rtt_last 0.25 weight 1 p 0.025 wait 0 limit 500 min 20 max 200 every 0.05}
simulator

set router [$ns node]
set sink [$ns node]
$ns simplex-link $router $sink 1.5Mb 0 RED
$ns simplex-link $sink $router 100Mb 0 DropTail
$ns queue-limit $router $sink $given(limit)
set red [[$ns link $router $sink] queue]
foreach {name value} [list bytes_ false queue_in_bytes_ false mean_pktsize_ 512 thresh_ $given(min) \
	maxthresh_ $given(max) q_weight_ $given(weight) linterm_ [expr {1.0 / $given(p)}] wait_ $given(wait) gentle_ false] {
	$red set $name $value
}
set monitor [$ns monitor-queue $router $sink ""]

for {set i 0} {$i < $given(n)} {incr i} {
	set from [$ns node]
	$ns simplex-link $from $router 100Mb 0 DropTail
	$ns simplex-link $router $from 100Mb [expr {$given(rtt) + ($given(rtt_last) - $given(rtt)) * $i / ($given(n) - 1)}] DropTail
	set tcp [new Agent/TCP/Newreno]
	$tcp set packetSize_ 472
	$tcp set window_ 1000
	connect $from $tcp $sink [new Agent/TCPSink]
	start [$tcp attach-app FTP]
	lappend flows $tcp
}

proc sample {} {
	global ns given monitor flows queue together windows
	lappend queue [$monitor set pkts_]
	lappend together [total $flows cwnd_]
	set i 0
	foreach flow $flows { lappend windows([incr i]) [$flow set cwnd_] }
	$ns at [expr {[$ns now] + $given(every)}] sample
}

proc sum {values} { expr [join $values +] }
proc mean {values} { expr {1.0 * [sum $values] / [llength $values]} }

# Of the whole population, or of a sample of it.
proc variance {values {less 0}} {
	set mean [mean $values]
	foreach value $values { lappend squares [expr {($value - $mean) ** 2}] }
	return [expr {[sum $squares] / ([llength $values] - $less)}]
}

proc begin {} {
	global flows acked
	set acked [total $flows ack_]
	sample
}

proc end {} {
	global given flows acked queue together windows
	for {set i 1} {$i <= $given(n)} {incr i} {
		lappend of_each [variance $windows($i)]
		lappend means [mean $windows($i)]
	}
	print mean [mean $queue]
	print variance [variance $queue 1]
	print windows [sum $of_each]
	print window [mean $means]
	print sum [variance $together]
	print goodput [expr {([total $flows ack_] - $acked) * 472 * 8 / 1e6 / ($given(duration) - $given(warmup))}]
}
run
