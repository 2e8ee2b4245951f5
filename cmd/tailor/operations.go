package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"runtime"
	"time"

	"github.com/hiatus-tailor/tailor/extension"
	"github.com/hiatus-tailor/tailor/proxy"
)

// residentBytes is the memory of this process (Linux, proc(5)).
func residentBytes() float64 {
	text, _ := os.ReadFile("/proc/self/statm")
	var size, resident float64
	_, _ = fmt.Sscan(string(text), &size, &resident)
	return resident * float64(os.Getpagesize())
}

// operations serves what those ask who keep the proxy running, until the
// context ends: /healthz (the process runs), /readyz (new clients would be
// served), /metrics, and profiles on request.
func operations(
	ctx context.Context, address string, profiles bool, server *proxy.Proxy, log *slog.Logger,
) (wait func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	server.Metrics().Info("tailor_build_info", "The version that runs, and what built it.",
		[2]string{"version", extension.Version}, [2]string{"go_version", runtime.Version()})
	server.Metrics().Gauge("process_resident_memory_bytes",
		"Memory of the process, 0 where it is not told.", residentBytes)
	server.Metrics().Gauge("go_goroutines", "Goroutines of the process.",
		func() float64 { return float64(runtime.NumGoroutine()) })
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !server.Ready() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n"))
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_ = server.Metrics().Print(w)
	})
	if profiles {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	log.Info("operations", "address", listener.Addr().String())
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = web.Serve(listener)
	}()
	return func() {
		_ = web.Close()
		<-ended
	}, nil
}
