# SPDX-License-Identifier: GPL-2.0
# What all scripts have: words in pairs as options, a seed, a network of
# nodes, links with losses, and figures as lines of a name and a number.

# Takes options from the command line; what they are without it.
proc options {defaults} {
	global given argv
	array set given [concat {seed 1 warmup 50 duration 100} $defaults]
	foreach {name value} $argv {
		if {![info exists given($name)]} {
			error "no option $name; there are [lsort [array names given]]"
		}
		set given($name) $value
	}
}

# A seed is so many substreams on: streams of neighbouring seeds of ns-2's
# generator are multiples of each other.
proc simulator {} {
	global given ns defaultRNG
	for {set i 0} {$i < $given(seed)} {incr i} { $defaultRNG next-substream }
	set ns [new Simulator]
}

# Two nodes with a fast link, on which packets (or bytes: unit) are lost, or
# marked, with p on the way there.
proc lossy_path {rtt p {unit pkt} {mark 0}} {
	global ns
	set from [$ns node]
	set to [$ns node]
	$ns duplex-link $from $to 10Gb [expr {$rtt / 2.0}] DropTail
	$ns queue-limit $from $to 100000
	set loss [new ErrorModel]
	$loss unit $unit
	$loss set rate_ $p
	$loss set markecn_ $mark
	$loss drop-target [new Agent/Null]
	$ns lossmodel $loss $from $to
	return [list $from $to]
}

proc connect {from agent to sink} {
	global ns
	$ns attach-agent $from $agent
	$ns attach-agent $to $sink
	$ns connect $agent $sink
}

# Sources start at random within a second.
proc start {source} {
	global ns defaultRNG
	$ns at [$defaultRNG uniform 0 1] "$source start"
}

# The sum of a counter over agents.
proc total {agents counter} {
	set sum 0
	foreach agent $agents { set sum [expr {$sum + [$agent set $counter]}] }
	return $sum
}

proc print {name value} { puts [format "%s %.8g" $name $value] }

# Runs to the end; calls `begin` after the warm-up and `end` at the end.
proc run {} {
	global ns given
	$ns at $given(warmup) begin
	$ns at $given(duration) "end; exit 0"
	$ns run
}

# Of flows by name, kb/s that one sends: a list of agents, and the bytes of a
# packet.
proc begin {} {
	global agents before
	foreach name [array names agents] { set before($name) [total $agents($name) ndatapack_] }
}

proc end {} {
	global agents before bytes given
	foreach name [lsort [array names agents]] {
		set packets [expr {[total $agents($name) ndatapack_] - $before($name)}]
		print $name [expr {$packets * $bytes($name) * 8 / 1e3 /
			($given(duration) - $given(warmup)) / [llength $agents($name)]}]
	}
}
