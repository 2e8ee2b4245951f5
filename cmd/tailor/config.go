package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// layered sets flags from a file of keys and values and from the environment;
// what the command line gives is set afterwards and wins, then the environment,
// then the file. A key is a flag's name, or its words as nested keys: tls-key,
// tls_key and tls: {key: …} are the same. All faults are reported together.
func layered(flags *flag.FlagSet, args []string) error {
	path := configPath(args)
	var faults []error
	if path != "" {
		faults = append(faults, fromFile(flags, path))
	}
	flags.VisitAll(func(f *flag.Flag) {
		name := variable(f.Name)
		if v, ok := os.LookupEnv(name); ok && f.Name != "config" {
			if err := f.Value.Set(v); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", name, err))
			}
		}
	})
	return errors.Join(faults...)
}

// variable is the environment's name of a flag.
func variable(flag string) string {
	return "TAILOR_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// configPath finds --config before the flags are parsed.
func configPath(args []string) string {
	for i, arg := range args {
		name := strings.TrimLeft(arg, "-")
		if len(arg)-len(name) < 1 || len(arg)-len(name) > 2 {
			continue
		}
		if path, ok := strings.CutPrefix(name, "config="); ok {
			return path
		}
		if name == "config" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return os.Getenv(variable("config"))
}

func fromFile(flags *flag.FlagSet, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return fmt.Errorf("config: %s: %w", path, err)
	}
	values := make(map[string]string)
	if err := flatten("", tree, values); err != nil {
		return fmt.Errorf("config: %s: %w", path, err)
	}
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		f := flags.Lookup(key)
		if f == nil || key == "config" {
			faults = append(faults, fmt.Errorf("config: %s: unknown key %q", path, key))
			continue
		}
		if err := f.Value.Set(values[key]); err != nil {
			faults = append(faults, fmt.Errorf("config: %s: %s: %w", path, key, err))
		}
	}
	return errors.Join(faults...)
}

// flatten joins nested keys by hyphens.
func flatten(prefix string, tree map[string]any, values map[string]string) error {
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		name := prefix + strings.ReplaceAll(key, "_", "-")
		switch v := tree[key].(type) {
		case map[string]any:
			faults = append(faults, flatten(name+"-", v, values))
		case string, bool, int, int64, uint64, float64:
			if _, twice := values[name]; twice {
				faults = append(faults, fmt.Errorf("key %q is given twice", name))
			}
			values[name] = fmt.Sprint(v)
		default:
			faults = append(faults,
				fmt.Errorf("key %q holds neither a text, a number nor a truth value", name))
		}
	}
	return errors.Join(faults...)
}
