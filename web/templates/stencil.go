package templates

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// stencil is a still part in which only some texts change. Its component, which
// alone says what it looks like, draws it once with a hole for each of them.
type stencil []string

// hole is what a component is given for a text that changes.
const hole = "\x00"

// cut draws a part with holes.
func cut(part templ.Component) stencil { return strings.Split(string(drawn(part)), hole) }

// with fills the holes in the order in which they stand.
func (s stencil) with(texts ...string) filled { return filled{s, texts} }

// filled is a stencil with its texts.
type filled struct {
	around stencil
	texts  []string
}

// Render copies what stands around the texts, and escapes them as components do:
// quotes too, so that none can leave its attribute.
func (f filled) Render(_ context.Context, w io.Writer) error {
	if len(f.texts) != len(f.around)-1 {
		return fmt.Errorf("%d texts for the %d holes of %q", len(f.texts), len(f.around)-1, f.around)
	}
	for i, text := range f.texts {
		if _, err := io.WriteString(w, f.around[i]); err != nil {
			return err
		}
		if _, err := io.WriteString(w, templ.EscapeString(text)); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, f.around[len(f.texts)])
	return err
}
