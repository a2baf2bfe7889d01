# The image holds the program and the certificates of public authorities, and nothing
# else: no shell, no package manager. docs/install.md says how to run it.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev TARGETOS TARGETARCH
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH make build VERSION=$VERSION && mkdir /empty

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build --chown=65532:65532 /empty /tmp
COPY --from=build --chown=65532:65532 /empty /var/lib/redrive
COPY --from=build /src/bin/dashboard /usr/local/bin/
ENV PATH=/usr/local/bin REDRIVE_LISTEN=0.0.0.0:8080 REDRIVE_DB=/var/lib/redrive/redrive.db REDRIVE_LOG_FORMAT=json
# redrive.yaml is read from here if it exists.
WORKDIR /etc/redrive
USER 65532:65532
VOLUME /var/lib/redrive
EXPOSE 8080
# An upgrade of a large database takes time; a failure counts only after it.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10m CMD ["dashboard", "health"]
ENTRYPOINT ["dashboard"]
CMD ["serve"]
