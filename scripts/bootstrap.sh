#!/usr/bin/env bash
# Installs what a step needs and the machine lacks: bootstrap.sh [build|test|lint|bench]...
# A machine that has everything is left alone, without root and without network.
set -euo pipefail

packages=(cmake ninja-build g++ ccache libfmt-dev nlohmann-json3-dev libcli11-dev)
for step in "$@"; do
  case $step in
    build) ;;
    test) packages+=(libgtest-dev libgmock-dev libopenmpi-dev openmpi-bin) ;;
    lint) packages+=(clang-14 clang-tidy-14 clang-format-14 shellcheck git
      libgtest-dev libgmock-dev libopenmpi-dev openmpi-bin) ;;
    bench) packages+=(libbenchmark-dev) ;;
    *)
      echo "bootstrap: '$step' is none of build, test, lint, bench" >&2
      exit 1
      ;;
  esac
done

die() {
  printf 'bootstrap: %s\n' "$@" >&2
  exit 1
}

# Elsewhere than on Debian the packages have other names: look for what they bring.
check_without_apt() {
  local tool
  for tool in cmake ninja c++; do
    command -v "$tool" >/dev/null || die "$tool is missing, and this system has no apt-get." \
      "Install by hand what these Debian packages bring: ${packages[*]}"
  done
}

missing_packages() {
  local installed
  # dpkg-query also fails when a package is unknown to it, which just means missing.
  # shellcheck disable=SC2016  # dpkg-query's placeholders, not the shell's
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null) ||
    true
  for package in "${packages[@]}"; do
    grep -qx "installed $package" <<<"$installed" || echo "$package"
  done
}

apt_get() {
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
    -o Dpkg::Use-Pty=0 "$@" </dev/null >>"$log" 2>&1
}

if ! command -v apt-get >/dev/null; then
  check_without_apt
  exit 0
fi

mapfile -t missing < <(missing_packages | sort -u)
[ ${#missing[@]} -gt 0 ] || exit 0
by_hand="Install by hand: apt-get install ${missing[*]}"

root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || die "packages are missing, and there is neither root nor sudo." \
    "$by_hand"
  root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "bootstrap: installing ${missing[*]}"
apt_get update || true # may fail for a foreign source that has none of these packages
if ! apt_get install --yes --no-install-recommends "${missing[@]}"; then
  tail -n 20 "$log" >&2
  die "apt-get failed (its last lines are above). $by_hand"
fi
