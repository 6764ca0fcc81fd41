#!/bin/sh
# Usage: shared_symbols.sh NAMESPACE "OBJECT;OBJECT…". Fails if an object defines a weak symbol outside the namespace.
found=$(echo "$2" | tr ';' '\n' | xargs nm -C --defined-only | grep ' [WVuw] ' | grep -v -e "$1" -e DW.ref.)
[ -z "$found" ] && exit 0
echo "emitted outside $1:"
echo "$found"
exit 1
