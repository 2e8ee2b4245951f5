package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealthAsksTheProxyOfTheSameFile(t *testing.T) {
	ready := true
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || !ready {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
	}))
	defer proxy.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(proxy.URL, "http://"), ":")
	config := file(t, "tailor.yaml", "metrics: 0.0.0.0:"+port+"\nmax_clients: 10\n")
	code, out, fault := tailor(t, "health", "--config", config)
	if code != exitSuccess || out != "ready\n" {
		t.Errorf("exit %d: %s%s", code, out, fault)
	}
	t.Setenv("TAILOR_METRICS", "127.0.0.1:"+port)
	if code, _, fault := tailor(t, "health"); code != exitSuccess {
		t.Errorf("by the environment: exit %d: %s", code, fault)
	}
	ready = false
	code, _, fault = tailor(t, "health")
	if code != exitFailure || !strings.Contains(fault, "not ready") {
		t.Errorf("exit %d: %s", code, fault)
	}
	proxy.Close()
	if code, _, _ := tailor(t, "health"); code != exitFailure {
		t.Errorf("nobody answers: exit %d", code)
	}
	t.Setenv("TAILOR_METRICS", "")
	if code, _, _ := tailor(t, "health"); code != exitUsage {
		t.Errorf("no address: exit %d", code)
	}
}
