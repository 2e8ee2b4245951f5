FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make build

FROM debian:bookworm-slim
RUN apt-get update && \
    apt-get install --yes --no-install-recommends ca-certificates && \
    rm -rf /var/lib/apt/lists/* && \
    groupadd --gid 10001 tailor && \
    useradd --uid 10001 --gid 10001 --home-dir /var/lib/tailor --no-create-home \
        --shell /usr/sbin/nologin tailor && \
    install -d -o 10001 -g 10001 -m 0700 /var/lib/tailor
COPY --from=build /src/bin/tailor /usr/local/bin/tailor
COPY packaging/container.yaml /etc/tailor/tailor.yaml
ENV TAILOR_CONFIG=/etc/tailor/tailor.yaml
# A number, so that orchestrators can tell that it is not root.
USER 10001:10001
# The audit log: one volume for each proxy, to be kept.
VOLUME /var/lib/tailor
EXPOSE 6432 9432
HEALTHCHECK --interval=10s --timeout=6s --start-period=90s --retries=3 CMD ["tailor", "health"]
ENTRYPOINT ["tailor"]
CMD ["serve"]
