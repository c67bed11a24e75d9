# Sourced by the scripts for a GPU, in the repository root: finds or makes a Python that has everything.
#
# PYTHON names the Python to use. If it has everything it is used as it is; else .venv-gpu is made on top of it.
# Without an index, carry wheels: PIP_NO_INDEX=1 PIP_FIND_LINKS=folder scripts/...

python="${PYTHON:-python3}"
script="$(basename "$0" .sh)"
export TOKENIZERS_PARALLELISM=false
say() { echo "$script: $*"; }
fail() { echo "$script: $*" >&2; exit 1; }

has_cuda() { "$1" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; }
has_all() {
  has_cuda "$1" && "$1" - 2>/dev/null <<'END'
import accelerate, filelock, gguf, jsonschema, lark, llguidance, platformdirs, pydantic, pytest, referencing, tqdm
import transformers
assert tuple(map(int, transformers.__version__.split(".")[:2])) >= (5, 15)
END
}

make_venv() {
  # A torch that sees the GPU is kept: the venv looks through to it.
  local look=()
  if has_cuda "$python"; then look=(--system-site-packages); fi
  if [ ! -x .venv-gpu/bin/pip ]; then
    say "making .venv-gpu"
    rm -rf .venv-gpu .venv-gpu-tool
    # Debian's python3 may come without venv; then virtualenv is fetched.
    if ! "$python" -m venv "${look[@]}" .venv-gpu >/dev/null 2>&1; then
      rm -rf .venv-gpu
      "$python" -m pip install --quiet --target .venv-gpu-tool virtualenv
      PYTHONPATH=.venv-gpu-tool "$python" -m virtualenv --quiet "${look[@]}" .venv-gpu
    fi
  fi
  python=.venv-gpu/bin/python
  local pip=("$python" -m pip install --quiet --disable-pip-version-check)
  if ! has_cuda "$python"; then
    say "fetching torch"
    "${pip[@]}" torch
  fi
  # The versions that the tests know, but for torch, whose build belongs to the GPU's driver. A Python for
  # which one of them is not made takes what fits.
  grep -v '^torch==' constraints.txt > .venv-gpu/constraints.txt
  say "installing the package and pytest"
  "${pip[@]}" -c .venv-gpu/constraints.txt -e . pytest || "${pip[@]}" -e . pytest
}

set_up() {
  command -v "$python" >/dev/null || fail "$python is missing; install Python 3.10 or later, or set PYTHON=..."
  [ -e /dev/nvidiactl ] || command -v nvidia-smi >/dev/null || fail "no NVIDIA GPU here; --tiny needs none"
  has_all "$python" || make_venv
  has_cuda "$python" || fail "torch of $python sees no GPU: $("$python" -c 'import torch; print(torch.__version__)')"
  say "$("$python" -c 'import torch; print(torch.cuda.get_device_name(), "torch", torch.__version__)')"
}
