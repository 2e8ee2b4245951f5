package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// packaging is a file of what is shipped beside the program.
func packaging(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../packaging", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// accepted fails unless serve would start with the arguments.
func accepted(t *testing.T, args ...string) *serveOptions {
	t.Helper()
	flags, o := serveFlags(io.Discard)
	flags.SetOutput(io.Discard)
	if err := layered(flags, args); err != nil {
		t.Error(err)
	}
	if err := flags.Parse(args); err != nil {
		t.Error(err)
	}
	if err := o.validate(); err != nil {
		t.Error(err)
	}
	return o
}

// TestTheUnitStartsServeWithTheShippedFile: with what stands in it as comments, too.
func TestTheUnitStartsServeWithTheShippedFile(t *testing.T) {
	unit := packaging(t, "tailor.service")
	found := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/tailor serve (.*)$`).FindStringSubmatch(unit)
	if found == nil {
		t.Fatal("the unit does not start serve")
	}
	text := packaging(t, "tailor.yaml")
	uncommented := regexp.MustCompile(`(?m)^#(\w)`).ReplaceAllString(text, "$1")
	if uncommented == text {
		t.Error("no key stands in a comment")
	}
	for _, text := range []string{text, uncommented} {
		config := file(t, "tailor.yaml", text)
		arguments := strings.ReplaceAll(found[1], "/etc/tailor/tailor.yaml", config)
		o := accepted(t, strings.Fields(arguments)...)
		state := regexp.MustCompile(`(?m)^StateDirectory=(.*)$`).FindStringSubmatch(unit)
		if state == nil || filepath.Dir(o.audit.File) != "/var/lib/"+state[1] {
			t.Errorf("the unit cannot write %s", o.audit.File)
		}
	}
}

// TestTheImageServesWithItsFileAndIsAskedForItsHealth: by a number that is no root.
func TestTheImageServesWithItsFileAndIsAskedForItsHealth(t *testing.T) {
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^USER 10001:10001$`).Match(text) {
		t.Error("the image's user is no number")
	}
	check := regexp.MustCompile(`HEALTHCHECK .* CMD \["tailor", "(\w+)"\]`).FindSubmatch(text)
	if check == nil || !slices.ContainsFunc(commands, func(c command) bool {
		return c.name == string(check[1])
	}) {
		t.Errorf("there is no such command: %s", check)
	}
	t.Setenv("TAILOR_SERVICE_DSN", "host=postgres user=tailor_owner")
	o := accepted(t, "--config", file(t, "container.yaml", packaging(t, "container.yaml")))
	if o.metrics == "" || o.wait == 0 || o.audit.File == "" {
		t.Errorf("no health, wait or audit log: %+v", o)
	}
	if volume := filepath.Dir(o.audit.File); !strings.Contains(string(text), "\nVOLUME "+volume+"\n") {
		t.Errorf("%s is no volume", volume)
	}
}

// TestTheComposedProxiesServe: with the variables that the example gives them.
func TestTheComposedProxiesServe(t *testing.T) {
	var composed struct {
		Services map[string]struct {
			Environment map[string]string
		}
	}
	if err := yaml.Unmarshal([]byte(packaging(t, "compose/compose.yaml")), &composed); err != nil {
		t.Fatal(err)
	}
	balancer := packaging(t, "compose/haproxy.cfg")
	watcher := packaging(t, "compose/prometheus.yml")
	for number, name := range []string{"proxy1", "proxy2"} {
		t.Run(name, func(t *testing.T) {
			flags, _ := serveFlags(io.Discard)
			for key, value := range composed.Services[name].Environment {
				t.Setenv(key, value)
				if !strings.HasPrefix(key, "TAILOR_") || flags.Lookup(strings.ToLower(
					strings.ReplaceAll(strings.TrimPrefix(key, "TAILOR_"), "_", "-"))) == nil {
					t.Errorf("%s is no variable of serve", key)
				}
			}
			o := accepted(t, "--config", file(t, "container.yaml", packaging(t, "container.yaml")))
			if o.proxy.Peers.Number != number+1 || !o.proxy.ProxyProtocol {
				t.Errorf("%+v", o.proxy)
			}
			if !strings.Contains(balancer, name+":6432") || !strings.Contains(watcher, name+":9432") {
				t.Error("nobody sends it clients, or watches it")
			}
		})
	}
}

// TestTheBalancersFileIsOneOfHAProxy, where that is installed.
func TestTheBalancersFileIsOneOfHAProxy(t *testing.T) {
	program, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip(err)
	}
	path := file(t, "haproxy.cfg", packaging(t, "compose/haproxy.cfg"))
	if output, err := exec.Command(program, "-c", "-f", path).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}
