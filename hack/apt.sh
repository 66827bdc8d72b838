# Sourced by scripts that install Debian packages.

# apt runs apt-get, and waits while another program installs packages.
apt() {
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >&2
}

# install_package NAME installs a package, after what an installation that was cut off left
# undone: until then, apt-get refuses to install anything. Files that the user has changed
# stay.
install_package() {
  local broken=
  echo "Installing $1" >&2
  DEBIAN_FRONTEND=noninteractive dpkg --force-confdef --force-confold --configure --pending >&2 || broken=1
  apt install --yes --no-install-recommends "$1" && return
  echo "Updating package lists, the first attempt failed" >&2
  apt update || return
  # Where a package was unpacked and those that it needs were not.
  [[ -z $broken ]] || apt install --yes --fix-broken
  apt install --yes --no-install-recommends "$1"
}
