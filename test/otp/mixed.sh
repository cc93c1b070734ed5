#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Nodes of different OTP releases in one cluster: weft is compiled by each release, and random
# programs of signals are played between each two of them while the link between them fails. With
# three releases or more, also through a gateway of another release than its ends.
#
#   test/otp/mixed.sh ERL ERL [ERL ...]      for example test/otp/mixed.sh /opt/otp-2*/bin/erl
#
# ERL is the command erl of an installation, with erlc beside it; the oldest release comes first, as
# it compiles the test modules for all (functions sent between nodes must be the same code).
# SEED=<number> repeats a run, PROGRAMS=<number> is how many are played by each pair (default 100).
# No epmd is used. Exit code 0: all well.
set -eu

[ $# -ge 2 ] || { sed -n '3,14s/^# \{0,1\}//p' "$0"; exit 2; }
cd "$(dirname "$0")/../.."
seed=${SEED:-$$}
programs=${PROGRAMS:-100}
work=$(mktemp -d)
port=$((20000 + $$ % 10000))
nodes=
trap 'stop_nodes; rm -rf "$work"' EXIT

stop_nodes() { # SIGTERM: Erlang nodes stop in order
    for pid in $nodes; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" || true
    done
    nodes=
}

compile() { # erlc, directory, source files: behaviours first, the others need them
    mkdir -p "$2"
    erlc=$1 out=$2
    shift 2
    "$erlc" -pa "$out" -o "$out" $(grep -l '^-callback' "$@" || true)
    "$erlc" -pa "$out" -o "$out" "$@"
}

node() { # erl, name, more arguments; takes the place of the (sub)shell
    number=$(releases "$1")
    erl=$1 name=$2
    shift 2
    exec "$erl" -noinput -name "$name@127.0.0.1" -setcookie "mixed_$$" -proto_dist weft \
        -start_epmd false -epmd_module weft_epmd -pa "$work/$number" -pa "$work/test" \
        -weft ports "#{\"a\" => $port, \"b\" => $((port + 1)), \"g\" => $((port + 2))}" \
        -weft faults true -weft lanes 2 -weft resume_timeout_ms 30000 \
        -kernel prevent_overlapping_partitions false -kernel logger_level warning \
        -connect_all false "$@"
}

releases() { # the number of an erl in the list
    number=0
    for each in $all; do
        number=$((number + 1))
        [ "$each" = "$1" ] && echo $number && return
    done
}

play() { # erl of a, erl of b, erl of a gateway or nothing
    gateway=${3:-}
    topology=undefined
    [ -z "$gateway" ] ||
        topology="{static,#{links=>[{'a@127.0.0.1','g@127.0.0.1'},{'g@127.0.0.1','b@127.0.0.1'}]}}"
    node "$2" b -weft topology "$topology" -run weft_mixed serve & nodes="$nodes $!"
    [ -z "$gateway" ] || {
        node "$gateway" g -weft topology "$topology" -run weft_mixed serve & nodes="$nodes $!"
    }
    (node "$1" a -weft topology "$topology" \
        -run weft_mixed play "$seed" "$programs" "${gateway:+g}")
    stop_nodes
}

all=$*
for erl in "$@"; do
    compile "${erl%erl}erlc" "$work/$(releases "$erl")" $(find apps/weft/src -name '*.erl')
    cp apps/weft/src/weft.app.src "$work/$(releases "$erl")/weft.app"
done
compile "${1%erl}erlc" "$work/test" test/conformance/weft_signal_*.erl test/otp/weft_mixed.erl

for a in "$@"; do
    for b in "$@"; do
        [ "$a" = "$b" ] || play "$a" "$b"
        for g in "$@"; do
            [ "$a" = "$b" ] || [ "$g" = "$a" ] || [ "$g" = "$b" ] || play "$a" "$b" "$g"
        done
    done
done
