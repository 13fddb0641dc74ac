# SPDX-License-Identifier: GPL-2.0
# [BIAS00] III: n New Reno flows and some web users with packets of 512 bytes
# through RED at 1.5 Mb/s, whose spacing is uniform, or with `wait` delayed
# uniform. The queue's length and the flows' windows are sampled every 50 ms;
# each flow's losses and, with `probe`, the delays of a probe of 64 kb/s are
# taken from the trace of the queue.
source [file join [file dirname [info script]] common.tcl]
options {n 15 rtt 0.025 rtt_last 0.25 weight 1 p 0.025 wait 0 limit 500 min 20 max 200 every 0.05 users 0 probe 0 block 30}
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
set trace [file tempfile path]
$ns trace-queue $router $sink $trace

# A node from which the sink is so long a round trip away, all of it on the way back.
proc host {rtt} {
	global ns router
	set from [$ns node]
	$ns simplex-link $from $router 100Mb 0 DropTail
	$ns simplex-link $router $from 100Mb $rtt DropTail
	return $from
}

proc newreno {from fid} {
	global sink
	set tcp [new Agent/TCP/Newreno]
	$tcp set packetSize_ 472
	$tcp set window_ 1000
	$tcp set fid_ $fid
	connect $from $tcp $sink [new Agent/TCPSink]
	return $tcp
}

set flows {}
for {set i 0} {$i < $given(n)} {incr i} {
	set tcp [newreno [host [expr {$given(rtt) + ($given(rtt_last) - $given(rtt)) * $i / max($given(n) - 1, 1)}]] [expr {$i + 1}]]
	start [$tcp attach-app FTP]
	lappend flows $tcp
}
set server [host $given(rtt)]

# Users load pages of files, one after the other, each on a connection of its
# own: what abeload send web --model requests draws.
proc pareto {least shape} {
	global defaultRNG
	expr {$least * (1 - [$defaultRNG uniform 0 1]) ** (-1.0 / $shape)}
}

proc page {user} { file_of $user [expr {int(min([pareto 1 2.43], 10000))}] }

proc file_of {user left} {
	global server
	set tcp [newreno $server [expr {1000 + $user}]]
	$tcp proc done {} [list loaded $tcp $user [incr left -1]]
	[$tcp attach-app FTP] producemore [expr {int(ceil(min([pareto 1000 1], 1e7) / 472))}]
}

proc loaded {tcp user left} {
	global ns
	# not from within the agent that calls
	$ns at [$ns now] "over $tcp $user $left"
}

proc over {tcp user left} {
	global ns server
	$ns detach-agent $server $tcp
	if {$left} { file_of $user $left } else { silence $user }
}

proc silence {user} {
	global ns
	$ns at [expr {[$ns now] + min([pareto 1 1.5], 1e6)}] "page $user"
}

for {set user 0} {$user < $given(users)} {incr user} { silence $user }

set PROBE 2000
if {$given(probe)} {
	set udp [new Agent/UDP]
	$udp set fid_ $PROBE
	$udp set packetSize_ 512
	connect $server $udp $sink [new Agent/Null]
	set cbr [new Application/Traffic/CBR]
	foreach {name value} {packetSize_ 512 interval_ 0.064} { $cbr set $name $value }
	$cbr attach-agent $udp
	start $cbr
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

proc quantile {values q} {
	set rank [expr {int(ceil($q * [llength $values]))}]
	return [lindex [lsort -real $values] [expr {max($rank, 1) - 1}]]
}

# From the trace: lost(fid), a 0 or 1 for each packet; the probe's arrivals and delays.
proc read_trace {} {
	global ns given trace path lost arrivals delays PROBE
	$ns flush-trace
	seek $trace 0
	while {[gets $trace line] >= 0} {
		lassign $line what time from to type size flags fid src dst seq id
		if {$time < $given(warmup) || $fid > 999 && $fid != $PROBE} continue
		switch $what {
			+ {
				lappend lost($fid) 0
				set at($id) [list $time [expr {[llength $lost($fid)] - 1}]]
			}
			d { if {[info exists at($id)]} { lset lost($fid) [lindex $at($id) 1] 1 } }
			r {
				if {$fid == $PROBE && [info exists at($id)]} {
					lappend arrivals [expr {$time - $given(warmup)}]
					lappend delays [expr {1e3 * ($time - [lindex $at($id) 0])}]
				}
				unset -nocomplain at($id)
			}
		}
	}
	close $trace
	file delete $path
}

# Losses that stand alone, in percent, and losses in blocks of so many packets of a flow.
proc print_losses {} {
	global given lost
	set all 0
	set single 0
	foreach fid [lsort -integer [array names lost]] {
		if {$fid > 999} continue
		foreach run [split [join $lost($fid) ""] 0] {
			incr all [string length $run]
			incr single [expr {$run eq "1"}]
		}
		set counts {}
		for {set i 0} {$i + $given(block) <= [llength $lost($fid)]} {incr i $given(block)} {
			lappend counts [sum [lrange $lost($fid) $i [expr {$i + $given(block) - 1}]]]
		}
		if {![llength $counts]} continue
		lappend every {*}$counts
		lappend variances [variance $counts]
		set mean [mean $counts]
		foreach lag {1 2 5} {
			set products {}
			foreach a [lrange $counts 0 end-$lag] b [lrange $counts $lag end] {
				lappend products [expr {($a - $mean) * ($b - $mean)}]
			}
			if {[llength $products]} { lappend covariances($lag) [mean $products] }
		}
	}
	print single [expr {100.0 * $single / max($all, 1)}]
	print losses [mean $every]
	print losses_variance [variance $every]
	print several [expr {100.0 * [llength [lsearch -all -not -regexp $every {^[01]$}]] / [llength $every]}]
	# a short run may have no blocks that are so far apart
	foreach lag {1 2 5} { if {![info exists covariances($lag)]} { set covariances($lag) 0 } }
	print autocovariance1 [mean $covariances(1)]
	foreach lag {1 2 5} { print autocorrelation$lag [expr {[mean $covariances($lag)] / [mean $variances]}] }
}

# The largest RTP jitter in each 250 ms, and the 95th less the 5th percentile of delay in each 10 s, in ms.
proc print_probe {} {
	global given lost arrivals delays PROBE
	set jitter 0
	set before [lindex $delays 0]
	foreach time $arrivals delay $delays {
		set jitter [expr {$jitter + (abs($delay - $before) - $jitter) / 16}]
		set before $delay
		set w [expr {int($time / 0.25)}]
		set most($w) [expr {[info exists most($w)] ? max($most($w), $jitter) : $jitter}]
		lappend long([expr {int($time / 10)}]) $delay
	}
	foreach w [array names most] { lappend each $most($w) }
	foreach w [array names long] { lappend spreads [expr {[quantile $long($w) 0.95] - [quantile $long($w) 0.05]}] }
	print jitter [mean $each]
	print spread [mean $spreads]
	print lost [expr {100 * [mean $lost($PROBE)]}]
}

proc begin {} {
	global flows acked
	set acked [total $flows ack_]
	sample
}

proc end {} {
	global given flows acked queue together windows
	print mean [mean $queue]
	print variance [variance $queue 1]
	read_trace
	if {$given(probe)} print_probe
	if {!$given(n)} return
	for {set i 1} {$i <= $given(n)} {incr i} {
		lappend of_each [variance $windows($i)]
		lappend means [mean $windows($i)]
	}
	print windows [sum $of_each]
	print window [mean $means]
	print sum [variance $together]
	print goodput [expr {([total $flows ack_] - $acked) * 472 * 8 / 1e6 / ($given(duration) - $given(warmup))}]
	print_losses
}
run
