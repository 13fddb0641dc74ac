# SPDX-License-Identifier: GPL-2.0
# [TRANS00] 4, 5: losses change at a time; how fast a flow slows down, or how fast it
# grows. TCP is New Reno, GAIMD the same with 0.31 and 0.875, tfrc and discount are TFRC
# without and with history discounting. `loss` and what follows are as for `lab`:
#   alternating --p P --swing S --half H   at random: P(1-S), and P(1+S) in each other H s
#   periodic --every N --then M --half H   each Nth packet, and each Mth in each other H s
#   clock --p P --after T --tick S         at random until T, and then the first packet that is
#                                          S s or more after the last lost one
# Flows start at `begin`. Printed are, of each kind's mean flow:
#   i_KIND   packets a round trip more from one to the next, 2 to 32 of them after `at`
#   d_KIND   round trips (or ticks) after `at` until one has half of the mean of 50 before
#   before_KIND, after_KIND   kb/s from the warm-up to `at`, and from 3 s later on
source [file join [file dirname [info script]] common.tcl]
options {flows 2 rtt 0.1 size 1000 overhead 0.001 begin 0 at 60 loss alternating --p 0 --swing 0
	--half 1000 --every 0 --then 0 --after 0 --tick 0}
simulator

proc sender {kind from to} {
	global ns given defaultRNG
	if {$kind in {tfrc discount}} {
		set source [new Agent/TFRC]
		$source set useHeaders_ false
		$source set overhead_ $given(overhead)
		set sink [new Agent/TFRCSink]
		$sink set discount_ [expr {$kind eq "discount"}]
		set starts $source
	} else {
		set source [new Agent/TCP/Newreno]
		$source set window_ 10000
		$source set minrto_ [expr {4 * $given(rtt)}]
		$source set tcpTick_ 0.01
		if {$kind eq "gaimd"} {
			$source set increase_num_ 0.31
			$source set decrease_num_ 0.875
		}
		set sink [new Agent/TCPSink]
		set starts [$source attach-app FTP]
	}
	$source set packetSize_ $given(size)
	connect $from $source $to $sink
	$ns at [expr {$given(begin) + [$defaultRNG uniform 0 1]}] "$starts start"
	return $source
}

# Losses of one flow, which has its path to itself.
proc lose {from to} {
	global ns given
	if {$given(loss) eq "clock" && [$ns now] < $given(--after)} {
		set model [new ErrorModel]
		$model set rate_ $given(--p)
		$ns at $given(--after) "$model set rate_ 0; lose $from $to"
	} elseif {$given(loss) eq "clock"} {
		set model [new ErrorModel/Periodic]
		$model unit time
		$model set period_ $given(--tick)
		$model set offset_ $given(--after)
	} elseif {$given(loss) eq "periodic"} {
		set model [new ErrorModel/Periodic]
		$model set burstlen_ 1
		every $model $given(--every) $given(--then)
	} elseif {$given(loss) eq "alternating"} {
		set model [new ErrorModel]
		alternate $model -1
	} else {
		error "no losses $given(loss)"
	}
	$model drop-target [new Agent/Null]
	[$ns link $from $to] errormodule $model
}

proc alternate {model sign} {
	global ns given
	$model set rate_ [expr {$given(--p) * (1 + $sign * $given(--swing))}]
	$ns at [expr {[$ns now] + $given(--half)}] "alternate $model [expr {-$sign}]"
}

proc every {model now then} {
	global ns given
	$model set period_ $now
	$ns at [expr {[$ns now] + $given(--half)}] "every $model $then $now"
}

foreach kind {tcp gaimd tfrc discount} {
	for {set i 0} {$i < $given(flows)} {incr i} {
		lassign [lossy_path $given(rtt) 0] from to
		set source [sender $kind $from $to]
		lose $from $to
		lappend agents($kind) $source
	}
}

# What each flow has sent in each round trip from the warm-up on.
proc begin {} {
	global agents seen
	foreach kind [array names agents] {
		foreach agent $agents($kind) { set seen($agent) [list [$agent set ndatapack_]] }
	}
	look
}

proc look {} {
	global agents seen ns given
	foreach kind [array names agents] {
		foreach agent $agents($kind) { lappend seen($agent) [$agent set ndatapack_] }
	}
	$ns at [expr {[$ns now] + $given(rtt)}] look
}

proc mean {list} { expr {[llength $list] ? double([tcl::mathop::+ {*}$list]) / [llength $list] : 0} }

proc slope {list} {
	set middle [expr {([llength $list] - 1) / 2.0}]
	set i 0
	set up [set down 0]
	foreach x $list {
		set up [expr {$up + ($i - $middle) * $x}]
		set down [expr {$down + ($i - $middle) ** 2}]
		incr i
	}
	return [expr {$down ? $up / $down : 0}]
}

proc end {} {
	global agents seen given
	# seen has the warm-up's count twice
	set at [expr {round(($given(at) - $given(warmup)) / $given(rtt))}]
	set unit [expr {$given(--tick) ? $given(--tick) / $given(rtt) : 1}]
	set kbps [expr {$given(size) * 8 / 1e3 / $given(rtt)}]
	foreach kind [lsort [array names agents]] {
		set i [set d [set before [set after {}]]]
		foreach agent $agents($kind) {
			set sent {}
			foreach a [lrange $seen($agent) 1 end-1] b [lrange $seen($agent) 2 end] {
				lappend sent [expr {$b - $a}]
			}
			lappend i [slope [lrange $sent $at+2 $at+31]]
			lappend before [expr {$kbps * [mean [lrange $sent 0 $at-1]]}]
			lappend after [expr {$kbps * [mean [lrange $sent $at+30 end]]}]
			set half [expr {[mean [lrange $sent $at-50 $at-1]] / 2}]
			set n 0
			foreach x [lrange $sent $at end] {
				if {$x <= $half} { break }
				incr n
			}
			lappend d [expr {$n / $unit}]
		}
		foreach name {i d before after} { print ${name}_$kind [mean [set $name]] }
	}
}
run
