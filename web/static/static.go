// Package static makes the two files that every page loads, a stylesheet and a
// script, and the icon of the tab, which is part of the page.
//
// The sources are readable files, and many, in the directory files. What is sent is made
// of them by the command bundle, into the directory sent: one script and one stylesheet,
// without comments and long names. Each address holds a hash of the content, so that
// browsers may keep a file forever and never mix a new binary with old files.
package static

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
)

//go:embed sent files/favicon.svg
var embedded embed.FS

// File is a file as it is sent.
type File struct {
	Path   string // its address, which changes with its content
	Type   string // its media type
	Plain  []byte
	Gzip   func() []byte // Plain, compressed once it is asked for
	Brotli func() []byte // the same, a tenth smaller; it takes 0.1 s
}

// Stylesheet returns the stylesheet of all pages.
var Stylesheet = sync.OnceValue(func() File {
	return newFile("css", "text/css", embeddedFile("sent/app.css"))
})

// Script returns the script of all pages.
var Script = sync.OnceValue(func() File {
	return newFile("js", "text/javascript", embeddedFile("sent/app.js"))
})

// Icon returns the icon of the tab as an address that holds it.
var Icon = sync.OnceValue(func() string {
	return "data:image/svg+xml," + url.PathEscape(string(embeddedFile("files/favicon.svg")))
})

// Find returns the file that has an address.
func Find(path string) (File, bool) {
	for _, f := range []File{Stylesheet(), Script()} {
		if f.Path == path {
			return f, true
		}
	}

	return File{}, false
}

func newFile(ending, kind string, plain []byte) File {
	sum := sha256.Sum256(plain)

	return File{
		Path: fmt.Sprintf("/static/app-%x.%s", sum[:6], ending), Type: kind + "; charset=utf-8", Plain: plain,
		Gzip: sync.OnceValue(func() []byte {
			return packed(plain, func(to io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(to, gzip.BestCompression) })
		}),
		Brotli: sync.OnceValue(func() []byte {
			return packed(plain, func(to io.Writer) (io.WriteCloser, error) {
				return brotli.NewWriterLevel(to, brotli.BestCompression), nil
			})
		}),
	}
}

// packed compresses a file. Writing to memory does not fail.
func packed(plain []byte, coder func(io.Writer) (io.WriteCloser, error)) []byte {
	var b bytes.Buffer

	w, err := coder(&b)
	if err == nil {
		_, err = w.Write(plain)
	}

	err = errors.Join(err, w.Close())
	if err != nil {
		panic(fmt.Sprintf("static: %v", err))
	}

	return b.Bytes()
}

// embeddedFile returns a file of the binary.
func embeddedFile(name string) []byte {
	data, err := embedded.ReadFile(name)
	if err != nil {
		panic(err) // it is not there in any binary, so every test would fail
	}

	return data
}
