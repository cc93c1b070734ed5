#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The sources of the Erlang/OTP that is installed: prints their directory.
#
#   test/otp/source.sh CACHE
#
# OTP_SOURCE=DIR says where they are. Without it they come from where the packages came from, on
# Debian and Ubuntu: apt downloads the source of exactly this version to CACHE (about 60 MB), with a
# list of its own, so nothing of the machine's is changed. A second call finds them there. Exit
# code 1, and why on standard error, if there are none.
set -eu

[ $# -eq 1 ] || { sed -n '3,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
cache=$1

fail() {
    printf 'no sources of OTP: %s\n' "$1" >&2
    printf 'OTP_SOURCE=DIR names a directory with the sources of this version\n' >&2
    exit 1
}

installed() { # the version of OTP, as in OTP_VERSION of its sources
    erl -noinput -eval '
        Release = erlang:system_info(otp_release),
        File = filename:join([code:root_dir(), "releases", Release, "OTP_VERSION"]),
        io:put_chars(case file:read_file(File) of {ok, Version} -> Version; _ -> Release end),
        halt().'
}

has_suites() {
    [ -f "$1/lib/kernel/test/erpc_SUITE.erl" ]
}

if [ -n "${OTP_SOURCE:-}" ]; then
    has_suites "$OTP_SOURCE" || fail "$OTP_SOURCE has no lib/kernel/test/erpc_SUITE.erl"
    version=$(cat "$OTP_SOURCE/OTP_VERSION")
    [ "$version" = "$(installed)" ] ||
        fail "$OTP_SOURCE has version $version, installed is $(installed)"
    echo "$OTP_SOURCE"
    exit 0
fi

command -v apt-get > /dev/null && command -v dpkg-query > /dev/null || fail "this is not Debian"
command -v dpkg-source > /dev/null || fail "there is no dpkg-source (package dpkg-dev)"
package=$(dpkg-query -W -f '${source:Package} ${source:Version}' erlang-base 2> /dev/null) ||
    fail "the installed Erlang is not the distribution's"
name=${package% *} version=${package#* }

target=$cache/$(printf '%s' "$version" | tr -c 'A-Za-z0-9.+~-' '_')
if has_suites "$target/source"; then
    echo "$target/source"
    exit 0
fi

# Where this version was installed from is where its source is.
rm -rf "$target"
mkdir -p "$target/lists/partial" "$target/archives/partial"
target=$(cd "$target" && pwd)
apt-cache madison erlang-base |
    awk -F ' *[|] *' '{ split($3, from, " "); split(from[2], part, "/")
                        print "deb-src", from[1], part[1], part[2] }' |
    sort -u > "$target/sources.list"
[ -s "$target/sources.list" ] || fail "apt knows no place with erlang-base (apt-get update?)"
apt_get() {
    apt-get -q -o Dir::Etc::SourceList="$target/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$target/lists" -o Dir::Cache="$target" -o APT::Sandbox::User="" "$@"
}
log=$target/log
apt_get update > "$log" 2>&1 || fail "apt-get update of their list: see $log"
(cd "$target" && apt_get source --download-only "$name=$version") >> "$log" 2>&1 ||
    fail "apt-get source $name=$version: see $log"
(cd "$target" && dpkg-source --no-check -x ./*.dsc unpacked) >> "$log" 2>&1 ||
    fail "dpkg-source cannot unpack them: see $log"
rm -rf "$target"/lists "$target"/archives "$target"/*.tar.*
has_suites "$target/unpacked" || fail "$name $version comes without test suites"
mv "$target/unpacked" "$target/source"
echo "$target/source"
