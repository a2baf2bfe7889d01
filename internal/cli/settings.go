package cli

import (
	"errors"
	"io/fs"
	"os"

	"redrive/internal/config"
	"redrive/internal/usage"
)

// usualConfig is the configuration file that is read where it exists.
const usualConfig = "redrive.yaml"

// loadConfig reads the named file. Without a name it reads the usual one where that
// exists, and takes the built-in configuration otherwise.
func loadConfig(path string) (*config.Config, error) { return loadConfigBy(config.Load, path) }

// loadConfigBy is loadConfig for commands that read a file in a way of their own.
func loadConfigBy(load func(path string) (*config.Config, error), path string) (*config.Config, error) {
	if path == "" {
		if _, err := os.Stat(usualConfig); errors.Is(err, fs.ErrNotExist) {
			return config.Default(), nil
		}

		path = usualConfig
	}

	c, err := load(path)
	if err != nil {
		return nil, usage.Of(err)
	}

	return c, nil
}
