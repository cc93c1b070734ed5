#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does what a page of the guide says, as its reader does, with nothing but a shell:
#
#   test/docs/follow.sh PAGE REPOSITORY install | rest
#
# In an empty directory: each block `sh' is run, and each block behind a line that begins with "The
# file `NAME`" becomes that file, in their order. `install' does only the blocks with apt-get, and
# `rest' the others. Where the page shows in a block what a command prints, behind "   # ", the
# command is repeated for a minute at most until it does: nodes find each other after a while.
# REPOSITORY stands where the page says <this repository>.
# Ends with 1 at the first command that fails. With root and without sudo, sudo only runs its words.
set -eu
page=$1
repository=$2
part=$3
SECONDS_MAX=60

# The page as a script of calls of the functions below. What a page has between its quotes is never
# read by this shell.
script() {
    awk -v fence='```' '
        inside && $0 == fence { if (wanted) print "END_OF_BLOCK"; inside = 0; next }
        inside { if (wanted) print; next }
        index($0, fence) == 1 {
            inside = 1; wanted = 0
            if (before ~ /^The file `/) {
                split(before, words, "`")
                print "written \x27" words[2] "\x27 << \x27END_OF_BLOCK\x27"; wanted = 1
            } else if ($0 == fence "sh") {
                print "followed << \x27END_OF_BLOCK\x27"; wanted = 1
            }
        }
        { before = $0 }' "$page"
}

written() { # name; the content comes in
    case $part in
        rest) sed "s|<this repository>|$repository|g" > "$1" ;;
        *) cat > /dev/null ;;
    esac
}

followed() { # the block comes in
    block=$(cat)
    case $part:$block in
        install:*apt-get*) run "$block" ;;
        install:* | rest:*apt-get*) ;;
        rest:*"   # "*) answered ;;
        rest:*) run "$block" ;;
    esac
}

run() { # commands
    printf '%s\n' "$1" | sed 's/^/+ /'
    if [ "$(id -u)" -eq 0 ] && ! command -v sudo > /dev/null; then
        sh -ec 'sudo() { "$@"; }
'"$1" < /dev/null
    else
        sh -ec "$1" < /dev/null
    fi
}

# Commands after those that say where and with what they run.
answered() {
    first=
    printf '%s\n' "$block" > "$place/commands"
    while IFS= read -r line; do
        case $line in
            "cd "* | "export "*) first="$first$line
" ;;
            *"   # "*) until_says "${line%%   # *}" "${line##*   # }" ;;
            *) until_says "$line" "" ;;
        esac
    done < "$place/commands"
}

until_says() { # command, text
    tries=$SECONDS_MAX
    until said=$(run "$first$1" 2>&1) && { printf '%s\n' "$said"; has "$said" "$2"; }; do
        tries=$((tries - 1))
        if [ $tries -eq 0 ]; then
            printf '%s\n' "$said" "never said: $2"
            exit 1
        fi
        sleep 1
    done
}

# What was printed, without the command itself.
has() { printf '%s\n' "$1" | grep -v '^+ ' | grep -qF -- "$2" || [ -z "$2" ]; }

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
script > "$place/script"
. "$place/script"
