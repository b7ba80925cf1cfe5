#!/bin/sh
# Runs a command and checks how it ends: with this exit code, after printing one line that matches
# the pattern, and no error besides.
#
#   sh expect_line.sh 2 "libra: error: M 3" mpirun -n 4 libra run ...
set -u
wanted_code=$1
pattern=$2
shift 2

output=$("$@" 2>&1)
code=$?
lines=$(printf '%s\n' "$output" | grep -c -e "$pattern")
other_errors=$(printf '%s\n' "$output" | grep -e 'libra: error' | grep -c -v -e "$pattern")

if [ "$code" -eq "$wanted_code" ] && [ "$lines" -eq 1 ] && [ "$other_errors" -eq 0 ]; then
  exit 0
fi
printf '%s\n' "$output"
echo "exit code $code, wanted $wanted_code"
echo "$lines lines match '$pattern', wanted 1; $other_errors other errors, wanted 0"
exit 1
