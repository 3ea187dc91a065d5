# One image for every operator: docker build --build-arg OPERATOR=deployment-operator . (OPERATOR=operators has all in one).
# With a binary that is built already (what `make image` does), and nothing pulled:
#   docker build --build-arg OPERATOR=deployment-operator --target prebuilt --file Dockerfile dist/bin

# An image holds its program and /licenses: no shell, no shared library. It runs as 65532. The image `operators` runs as
# root (RUN_AS=0:0), because kubeadm's manifest names no user and mounts root's keys.
FROM scratch AS empty
ARG RUN_AS=65532:65532
USER $RUN_AS
# The licences of all that is in a program, as /licenses has their texts; where a crate gives a choice, one of them.
LABEL org.opencontainers.image.licenses="Apache-2.0 AND BSD-3-Clause AND ISC AND LGPL-2.1-or-later AND MIT"
ENTRYPOINT ["/operator"]

FROM empty AS prebuilt
ARG OPERATOR
LABEL org.opencontainers.image.title=$OPERATOR
COPY licenses /licenses
COPY $OPERATOR /operator

FROM rust:1.95.0-bookworm AS build
ARG OPERATOR
# For --version: --build-arg COMMIT=$(git rev-parse --short=12 HEAD)
ARG COMMIT=
WORKDIR /source
COPY . .
RUN make build licenses PROGRAMS="$OPERATOR" COMMIT="$COMMIT" && mv "dist/bin/$OPERATOR" /operator

FROM empty
ARG OPERATOR
LABEL org.opencontainers.image.title=$OPERATOR
COPY --from=build /source/dist/bin/licenses /licenses
COPY --from=build /operator /operator
