package static

import (
	"fmt"
	"path"

	"github.com/evanw/esbuild/pkg/api"
)

// script returns one classic script for all pages. The theme is first and runs at
// once, so that no page is drawn in the wrong one. The modules run when the page is
// there, as modules do.
func script() string {
	return small("theme.js") + `document.addEventListener("DOMContentLoaded",()=>{"use strict";` + small("app.js") + "});"
}

// small returns a source, with all that it imports, as short as it can be said. Whatever
// goes wrong is a mistake in an embedded file, and fails the test of every page.
func small(name string) string {
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{name}, Plugins: []api.Plugin{embeddedFiles}, Bundle: true, Format: api.FormatESModule,
		MinifyWhitespace: true, MinifySyntax: true, MinifyIdentifiers: true,
	})
	if problems := append(result.Errors, result.Warnings...); len(problems) > 0 {
		panic(fmt.Sprintf("static: %s: %v", name, api.FormatMessages(problems, api.FormatMessagesOptions{})))
	}
	return string(result.OutputFiles[0].Contents)
}

// embeddedFiles reads sources from the binary, not from the disk.
var embeddedFiles = api.Plugin{Name: "embedded", Setup: func(b api.PluginBuild) {
	b.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
		return api.OnResolveResult{Path: path.Base(a.Path), Namespace: "embedded"}, nil
	})
	b.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: "embedded"}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
		text, err := source(a.Path)
		return api.OnLoadResult{Contents: &text, Loader: api.LoaderDefault}, err
	})
}}
