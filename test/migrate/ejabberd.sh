#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ejabberd's own suite before and after `weft migrate rewrite' (docs/guide/migrate.md):
#
#   test/migrate/ejabberd.sh BUILT
#
# BUILT is Debian's source of ejabberd, built; it stays as it is. Copies of it run the suite, with
# the backends that need no server: before on stock distribution, after over weft. By hand it adds
# what a release of the migrated program needs: weft as carrier and among the applications that
# ejabberd needs. ERL_LIBS says where ejabberd's libraries are. The suite listens on fixed ports
# (5222, 5280 and others), so run it in a network of its own: `unshare -n', with lo up. The exit
# code is 0 if each case has the same result.
set -eu
[ $# -eq 1 ] || { echo "usage: ejabberd.sh BUILT" >&2; exit 2; }
built=$(realpath "$1")
top=$(realpath "$(dirname "$0")/../..")
base=$(realpath "${REBAR_BASE_DIR:-$top/_build}")
work=$base/migrate/ejabberd
weft=$base/default/lib/weft/ebin
rm -rf "$work"
mkdir -p "$work/runner"
cp -a "$built" "$work/before"
cp -a "$built" "$work/after"
erlc -o "$work/runner" "$top/test/otp/weft_otp_hook.erl"

cd "$work/after"
# 1: something is left, which goes on with what it has.
"$base/default/bin/weft" migrate rewrite src test --write || [ $? -eq 1 ]
make
erl -noinput -eval '
    {ok, [{application, App, Keys}]} = file:consult("ebin/ejabberd.app"),
    {applications, Needed} = lists:keyfind(applications, 1, Keys),
    Now = lists:keystore(applications, 1, Keys, {applications, Needed ++ [weft]}),
    ok = file:write_file("ebin/ejabberd.app", io_lib:format("~tp.~n", [{application, App, Now}])),
    halt().'

suite() { # directory, flags of erl: what became of each case is in its `events'
    dir=$work/$1
    shift
    mkdir -p "$dir/logs"
    (cd "$dir" && CT_BACKENDS=mnesia,ldap,extauth ERL_EPMD_PORT=4399 erl -noinput \
        -sname ejabberd@localhost -pa "$dir/ebin" "$work/runner" "$@" -eval '
            {ok, Dir} = file:get_cwd(),
            {_, _, _} = ct:run_test([{dir, "test"}, {suite, "ejabberd_SUITE"}, {logdir, "logs"},
                {include, [Dir, filename:join(Dir, "include")]},
                {ct_hooks, [{weft_otp_hook, #{events => filename:join(Dir, "events"),
                                              except => #{}}}]}]),
            halt().' > output 2>&1)
    epmd -port 4399 -kill > /dev/null 2>&1 || true
}
suite before
suite after -pa "$weft" -proto_dist weft

# Sums as Common Test has them. A case is told several times: it is in a group of each backend.
grep -h 'TEST COMPLETE' "$work/before/output" "$work/after/output"
erl -noinput -eval '
    Results = fun(Dir) ->
                      {ok, Told} = file:consult(filename:join(Dir, "events")),
                      lists:sort([{Case, Group, Status} || {Case, Group, Status, _} <- Told])
              end,
    [Before, After] = [Results(Dir) || Dir <- init:get_plain_arguments()],
    [io:format("only ~ts: ~0tp~n", [When, Result])
     || {When, Those} <- [{before, Before -- After}, {later, After -- Before}],
        Result <- Those],
    halt(case Before =:= After of true -> 0; false -> 1 end).' \
    -extra "$work/before" "$work/after"
