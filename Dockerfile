# docker build --tag gmr .
# docker run --rm --volume "$PWD/results:/gmr/results" --volume "$PWD/reports:/gmr/reports" gmr table      (or: gmr test)
# Programs of real models need the sandbox's level `full`, which the default seccomp filter refuses (docs/sandbox.md).
# Not built by the maintainers since it was written (November 2026); the CI job `container` builds and runs it.
FROM python:3.11.14-slim-bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends git make && rm -rf /var/lib/apt/lists/*
WORKDIR /gmr
COPY . .
RUN make .venv/.ready-dev
ENV PATH="/gmr/.venv/bin:$PATH"
ENTRYPOINT ["make"]
CMD ["table"]
