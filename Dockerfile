# docker build -t amharic-xtts .                                  CPU only
# docker build -t amharic-xtts:cuda --build-arg TORCH=cuda .      for NVIDIA cards
# docker run --rm -p 127.0.0.1:7860:7860 -v "$PWD/output:/app/output" amharic-xtts
# docker run --rm -v "$PWD/output:/app/output" amharic-xtts train --project mine --config configs/tiny_cpu.yaml
FROM python:3.11.14-slim-bookworm

SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /app

# User ID of the owner of output/ on the host, so that host and container can both write there.
ARG USER_ID=1000
RUN useradd --uid "$USER_ID" --create-home voice

# Copied before the code, so that a code change does not reinstall packages.
COPY requirements.txt overrides.txt ./

# PyTorch brings the CUDA libraries along and the host lends the driver, so both variants use the same base image.
# CUDA 12.6 runs with every driver since 525 on Maxwell to Hopper; RTX 50xx and B200 need TORCH=cu128 (driver 570).
# The last line writes the stamp that tells start.sh that everything is installed.
ARG TORCH=cpu
RUN python -m venv .venv; \
    case "$TORCH" in \
      cpu|cu126|cu128) BUILD="$TORCH" ;; \
      cuda) BUILD=cu126 ;; \
      *) echo "TORCH is cpu, cuda, cu126 or cu128, not $TORCH." >&2; exit 1 ;; \
    esac; \
    python -m pip install --no-cache-dir --disable-pip-version-check --root-user-action=ignore uv==0.13.9; \
    sed -nE 's/^((torch|torchaudio)==[^ ]+).*/\1/p' requirements.txt > torch.txt; \
    python -m uv pip install --no-cache --compile-bytecode --python .venv/bin/python --torch-backend="$BUILD" -r torch.txt; \
    rm torch.txt; \
    python -m pip uninstall --yes --root-user-action=ignore uv; \
    .venv/bin/python -m pip install --no-cache-dir --disable-pip-version-check --no-deps -r requirements.txt; \
    cat overrides.txt requirements.txt | cksum > .venv/.installed

COPY start.sh xtts_demo.py pyproject.toml LICENSE ./
COPY docs ./docs
COPY configs ./configs
COPY utils ./utils

# Only output/ is writable. It holds everything worth keeping: projects, models, and what recognisers download.
RUN python -m compileall -q utils xtts_demo.py; \
    install -d -o voice -g voice output
ENV PYTHONUTF8=1 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    HF_HOME=/app/output/.cache/huggingface \
    MPLCONFIGDIR=/tmp/matplotlib \
    NUMBA_CACHE_DIR=/tmp/numba
VOLUME ["/app/output"]
USER voice
EXPOSE 7860

# The login page answers without a password.
HEALTHCHECK --interval=30s --timeout=10s --start-period=120s --retries=3 \
    CMD [".venv/bin/python", "-c", "import http.client as h; c = h.HTTPConnection('127.0.0.1', 7860, timeout=5); c.request('GET', '/'); raise SystemExit(c.getresponse().status != 200)"]

# In a container the page must listen on all addresses, so it asks for a password: the USER:PASSWORD of
# AMHARIC_TTS_AUTH, or a new one that it prints.
ENTRYPOINT ["./start.sh"]
CMD ["--host", "0.0.0.0"]
