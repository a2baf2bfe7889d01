package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"text/tabwriter"
)

// PrintTable prints lines whose cells are separated by tabs, in aligned columns.
func (c Console) PrintTable(rows string) error {
	w := tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, rows)
	return w.Flush()
}

// PrintJSON prints a JSON document on one line.
func (c Console) PrintJSON(raw json.RawMessage) error {
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return fmt.Errorf("read the dashboard's answer: %w", err)
	}

	line.WriteByte('\n')
	_, err := c.Stdout.Write(line.Bytes())

	return err
}
