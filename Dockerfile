FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make build

FROM debian:bookworm-slim
RUN useradd --system --no-create-home tailor
COPY --from=build /src/bin/tailor /usr/local/bin/tailor
USER tailor
EXPOSE 6432
ENTRYPOINT ["tailor"]
CMD ["serve", "--listen", "0.0.0.0:6432"]
