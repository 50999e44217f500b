# What `make demo`, `make notebooks` and `make test` need, without a GPU. docs/installing.md says how it is used.
#
#   docker build -t flashladder .
#   docker run --rm -it flashladder make demo

# The tools alone: .devcontainer takes this stage and brings its own folder.
FROM ubuntu:24.04 AS tools
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        ca-certificates diffutils g++ git make python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
# A folder that was mounted from outside may belong to another user; results name their commit all the same.
RUN git config --system --add safe.directory '*'
ENV LANG=C.UTF-8

FROM tools AS project
RUN install --directory --owner=ubuntu --group=ubuntu /project
USER ubuntu
WORKDIR /project
# What is installed depends on these files alone, so that a changed kernel does not install all of it again.
COPY --chown=ubuntu:ubuntu pyproject.toml setup.cfg README.md Makefile ./
COPY --chown=ubuntu:ubuntu common/python common/python
COPY --chown=ubuntu:ubuntu common/host common/host
RUN make setup
COPY --chown=ubuntu:ubuntu . .
CMD ["make", "demo"]
