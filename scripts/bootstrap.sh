#!/usr/bin/env bash
# Installs what a step needs and the machine lacks:
#   bootstrap.sh [build|test|lint|bench|fuzz|report|browser]...
# A machine that has everything is left alone, without root and without network.
set -euo pipefail

packages=(cmake ninja-build g++ ccache libfmt-dev nlohmann-json3-dev libcli11-dev)
wheels=()
requirements='' # a file of more wheels
# Where there is a CUDA compiler, the GPU rooms are built; cuDNN's C++ headers come from PyPI.
nvcc=$(command -v nvcc || echo "${CUDA_PATH:-/usr/local/cuda}/bin/nvcc")
if [ -x "$nvcc" ]; then
  packages+=(python3-venv)
  wheels+=(nvidia-cudnn-frontend==1.32.0)
fi
for step in "$@"; do
  case $step in
    build) ;;
    test)
      packages+=(libgtest-dev libgmock-dev libopenmpi-dev openmpi-bin python3-venv python3-dev)
      requirements=$(dirname "$0")/../python/requirements-test.txt
      ;;
    lint) packages+=(clang-14 clang-tidy-14 clang-format-14 shellcheck git
      libgtest-dev libgmock-dev libopenmpi-dev openmpi-bin) ;;
    bench) packages+=(libbenchmark-dev) ;;
    fuzz) packages+=(clang-14 libclang-rt-14-dev) ;;
    report)
      packages+=(python3-venv)
      wheels+=(plotly==7.1.0 narwhals==2.29.0 packaging==26.4)
      ;;
    browser) packages+=(chromium-headless-shell) ;;
    *)
      echo "bootstrap: '$step' is none of build, test, lint, bench, fuzz, report, browser" >&2
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

install_packages() {
  local missing by_hand
  mapfile -t missing < <(missing_packages | sort -u)
  [ ${#missing[@]} -gt 0 ] || return 0
  by_hand="Install by hand: apt-get install ${missing[*]}"
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "packages are missing, and there is neither root nor sudo." \
      "$by_hand"
    root=(sudo)
  fi
  echo "bootstrap: installing ${missing[*]}"
  apt_get update || true # may fail for a foreign source that has none of these packages
  if ! apt_get install --yes --no-install-recommends "${missing[@]}"; then
    tail -n 20 "$log" >&2
    die "apt-get failed (its last lines are above). $by_hand"
  fi
}

# A virtual environment outside the checkout, which all checkouts share. What is built without a
# wheel says so itself, so a machine without PyPI goes on.
install_wheels() {
  local venv=${LIBRA_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/libra/venv} stamp
  for wheel in "${wheels[@]}"; do
    stamp=$venv/installed-$wheel
    [ ! -e "$stamp" ] || continue
    echo "bootstrap: installing $wheel"
    if { [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"; } >>"$log" 2>&1 &&
      "$venv/bin/pip" install --quiet --no-deps "$wheel" >>"$log" 2>&1; then
      touch "$stamp"
    else
      tail -n 5 "$log" >&2
      echo "bootstrap: going on without $wheel" >&2
    fi
  done
  [ -z "$requirements" ] || install_requirements
}

# What the tests of the Python package need: 4 GB, of which torch and CUDA's libraries are most.
install_requirements() {
  local stamp
  stamp=$venv/requirements-$(sha256sum <"$requirements" | cut -c 1-16)
  [ ! -e "$stamp" ] || return 0
  echo "bootstrap: installing ${requirements##*/} (4 GB)"
  if { [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"; } >>"$log" 2>&1 &&
    "$venv/bin/pip" install --quiet --no-deps --requirement "$requirements" >>"$log" 2>&1; then
    touch "$stamp"
  else
    tail -n 5 "$log" >&2
    echo "bootstrap: going on without the tests of the Python package" >&2
  fi
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
root=()
if command -v apt-get >/dev/null; then
  install_packages
else
  check_without_apt
fi
install_wheels
