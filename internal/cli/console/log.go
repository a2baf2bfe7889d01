package console

import (
	"log/slog"

	"redrive/internal/usage"
)

// Log returns a log on the standard error that shows what has this level or a higher one, as
// text or as JSON.
func (c Console) Log(level, format string) (*slog.Logger, error) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, usage.Of(err)
	}

	out, options := c.Stderr, &slog.HandlerOptions{Level: least}

	// A password is hidden in the values before a line is made of them. In the line, it
	// could also be a number, or a part of the syntax.
	if h, ok := out.(*hider); ok {
		out, options.ReplaceAttr = h.to, h.attribute
	}

	if format == "json" {
		return slog.New(slog.NewJSONHandler(out, options)), nil
	}

	return slog.New(slog.NewTextHandler(out, options)), nil
}
