#!/bin/sh
# Makes sure that .venv is what the requirement files say: environment.sh runtime|dev
#
# This part only asks "is it current?", in a few milliseconds and with nothing but cmp, and finds a
# Python when it is not; environment.py does the work and holds the theory.
set -eu

group=$1
root=$(CDPATH='' cd -P -- "${0%/*}/.." && pwd -P)
stamp=$root/.venv/horolog-stamp

is_current() {
    [ -x "$root/.venv/bin/python" ] && [ -f "$stamp/root" ] || return 1
    IFS= read -r stamped_root <"$stamp/root" || return 1
    # A moved or copied checkout: the environment still points to the old place.
    [ "$stamped_root" = "$root" ] || return 1
    cmp -s "$root/requirements/runtime.txt" "$stamp/runtime.txt" || return 1
    cmp -s "$root/requirements/build.txt" "$stamp/build.txt" || return 1
    cmp -s "$root/pyproject.toml" "$stamp/pyproject.toml" || return 1
    [ "$group" = runtime ] || cmp -s "$root/requirements/$group.txt" "$stamp/$group.txt"
}

if is_current; then exit 0; fi

found=
if [ -n "${HOROLOG_PYTHON:-}" ]; then
    set -- "$HOROLOG_PYTHON"
else
    set -- python3 python3.14 python3.13 python3.12 python3.11 python
fi
for candidate; do
    path=$(command -v "$candidate") || continue
    version=$("$path" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) ||
        version='which does not run'
    case $version in
        [012].* | 3.[0-9].* | 3.10.* | w*) found="$found
  $candidate: $version ($path)" ;;
        # -I: neither the caller's folder nor PYTHON* variables decide what is imported.
        *) exec "$path" -I "$root/requirements/environment.py" "$group" ;;
    esac
done

{
    echo "horolog: needs Python 3.11 or newer with pip; found:${found:-
  none${HOROLOG_PYTHON:+ (HOROLOG_PYTHON is $HOROLOG_PYTHON)}}"
    echo "Install one (Debian, Ubuntu: apt-get install python3 python3-pip)," \
        "or set HOROLOG_PYTHON to its path."
} >&2
exit 1
