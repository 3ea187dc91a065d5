# One image for every operator: docker build --build-arg OPERATOR=deployment-operator . (OPERATOR=operators has all in one).
# With a binary that is built already (what `make image` does), and nothing pulled:
#   docker build --build-arg OPERATOR=deployment-operator --target prebuilt --file Dockerfile dist/bin

# All that is in an image beside its one file: no shell, no libc, no root.
FROM scratch AS empty
USER 65532:65532
ENTRYPOINT ["/operator"]

FROM empty AS prebuilt
ARG OPERATOR
LABEL org.opencontainers.image.title=$OPERATOR org.opencontainers.image.licenses=Apache-2.0
COPY $OPERATOR /operator

FROM rust:1.95.0-bookworm AS build
ARG OPERATOR
WORKDIR /source
COPY . .
RUN make build PROGRAMS="$OPERATOR" && mv "dist/bin/$OPERATOR" /operator

FROM empty
ARG OPERATOR
LABEL org.opencontainers.image.title=$OPERATOR org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /operator /operator
