# docker build --tag gmr .
# docker run --rm --volume "$PWD/results:/gmr/results" --volume "$PWD/reports:/gmr/reports" gmr table      (or: gmr test)
# Programs of real models need the sandbox's level `full`, which the default seccomp filter refuses (docs/sandbox.md).
# Not built by the maintainers since it was written (November 2026); the CI job `container` builds and runs it.
FROM python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d
RUN apt-get update && apt-get install --yes --no-install-recommends git make && rm -rf /var/lib/apt/lists/*
WORKDIR /gmr
COPY . .
RUN python -m venv .venv && .venv/bin/pip install --quiet --require-hashes -r hashes.txt
RUN make .venv/.ready-dev
ENV PATH="/gmr/.venv/bin:$PATH"
ENTRYPOINT ["make"]
CMD ["table"]
