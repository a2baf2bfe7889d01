// Command bundle writes the script and the stylesheet that every page loads, as they are
// sent: it joins the sources in web/static/files, and drops comments and long names. It
// runs when they change (make generate), so that the program has no need of a bundler.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	log.SetFlags(0)

	if len(os.Args) != 2 {
		log.Fatal("Usage: bundle DIRECTORY, which is web/static")
	}

	if err := write(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// write makes the files in the directory sent of those in the directory files.
func write(dir string) error {
	all, err := bundle(filepath.Join(dir, "files"))
	for name, text := range all {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "sent", name), text, 0o644))
	}

	return err
}

// bundle returns the files that are sent, by name. The theme is first in the script and
// runs at once, so that no page is drawn in the wrong one. The modules run when the page
// is there, as modules do.
func bundle(from string) (map[string][]byte, error) {
	theme, err := small(from, "theme.js")
	if err != nil {
		return nil, err
	}

	modules, err := small(from, "app.js")
	if err != nil {
		return nil, err
	}

	style, err := small(from, "app.css")
	script := theme + `document.addEventListener("DOMContentLoaded",()=>{"use strict";` + modules + "});\n"

	return map[string][]byte{"app.js": []byte(script), "app.css": []byte(style)}, err
}

// small returns a source, with all that it imports, as short as it can be said.
func small(from, name string) (string, error) {
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{filepath.Join(from, name)}, Bundle: true, Format: api.FormatESModule,
		MinifyWhitespace: true, MinifySyntax: true, MinifyIdentifiers: true,
	})
	if problems := append(result.Errors, result.Warnings...); len(problems) > 0 {
		return "", fmt.Errorf("%s: %v", name, api.FormatMessages(problems, api.FormatMessagesOptions{}))
	}

	return string(result.OutputFiles[0].Contents), nil
}
