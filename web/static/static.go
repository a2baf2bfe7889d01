// Package static holds the files that every page links to: the stylesheet, the
// ES modules and the icon of the tab.
//
// They live under one address, /static/HASH/name, where HASH is the content of
// all of them: a browser may keep what it has for ever, and a new binary is
// never mixed with old files, because modules import each other relatively and
// so stay under the same hash.
package static

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"sync"
)

//go:embed files
var embedded embed.FS

// FS returns the files by name, as "app.css".
func FS() fs.FS {
	files, err := fs.Sub(embedded, "files")
	if err != nil { // unreachable: the folder is embedded
		panic(err)
	}
	return files
}

// Prefix is the path below which the files are served, with the hash of their
// content: "/static/0f3c…/".
func Prefix() string { return "/static/" + hash() + "/" }

// Path returns the address of a file. Its content never changes.
func Path(name string) string { return Prefix() + name }

// hash is computed once: the files cannot change while the program runs.
var hash = sync.OnceValue(func() string {
	sum := sha256.New()
	err := fs.WalkDir(embedded, "files", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := embedded.ReadFile(path)
		sum.Write([]byte(path + "\x00"))
		sum.Write(data)
		return err
	})
	if err != nil { // unreachable: the files are embedded
		panic(err)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
})
