package bench_test

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sample is one figure at one size: a row of the table, and a point of a line in
// one panel of the plot.
type sample struct {
	panel, name string
	value       float64
	format      string // of the value in the table
}

// table has the same samples for each size.
type table struct {
	sizes   []int
	samples [][]sample // by size
}

func (t *table) add(jobs int, all []sample) {
	t.sizes, t.samples = append(t.sizes, jobs), append(t.samples, all)
}

// text is the table in Markdown.
func (t *table) text() string {
	var out strings.Builder
	out.WriteString("| jobs |")
	for _, n := range t.sizes {
		fmt.Fprintf(&out, " %s |", thousands(n))
	}
	out.WriteString("\n|---|" + strings.Repeat("---:|", len(t.sizes)) + "\n")
	panel := ""
	for i, s := range t.samples[0] {
		if s.panel != panel {
			panel = s.panel
			fmt.Fprintf(&out, "| **%s** |%s\n", panel, strings.Repeat(" |", len(t.sizes)))
		}
		fmt.Fprintf(&out, "| %s |", s.name)
		for _, size := range t.samples {
			fmt.Fprintf(&out, " "+size[i].format+" |", size[i].value)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// write puts the table between its marks in benchmarks.md, and the plot beside it.
func (t *table) write(dir string) error {
	path := filepath.Join(dir, "benchmarks.md")
	document, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	marks := regexp.MustCompile(`(?s)(<!-- growth:begin -->\n).*(<!-- growth:end -->)`)
	if !marks.Match(document) {
		return fmt.Errorf("%s has no marks for the table", path)
	}
	text := "![How Redrive grows](growth.svg)\n\n" + t.text()
	document = marks.ReplaceAll(document, []byte("${1}\n"+strings.ReplaceAll(text, "$", "$$")+"\n${2}"))
	if err := os.WriteFile(path, document, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "growth.svg"), t.plot(), 0o644)
}

func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// The measures of the plot: panels side by side in two columns.
const (
	panelWidth, panelHeight = 460, 300
	lineWidth, lineHeight   = 370, 150 // of the lines in a panel
	left, top               = 56, 48   // where they begin
)

// plotStyle makes the plot readable on light and dark pages.
const plotStyle = `
text { font: 12px system-ui, sans-serif; fill: #57606a }
.title { font-size: 14px; font-weight: 600; fill: #1f2328 }
.grid { stroke: #d0d7de; stroke-width: 1 }
.line { fill: none; stroke-width: 2; stroke-linejoin: round }
.c0 { stroke: #0969da; fill: #0969da } .c1 { stroke: #bc4c00; fill: #bc4c00 } .c2 { stroke: #1a7f37; fill: #1a7f37 }
.c3 { stroke: #8250df; fill: #8250df } .c4 { stroke: #bf3989; fill: #bf3989 } .c5 { stroke: #6e7781; fill: #6e7781 }
.line { fill: none }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1 } .title { fill: #f0f6fc } .grid { stroke: #3d444d }
.c0 { stroke: #4493f8; fill: #4493f8 } .c1 { stroke: #f0883e; fill: #f0883e } .c2 { stroke: #3fb950; fill: #3fb950 }
.c3 { stroke: #ab7df8; fill: #ab7df8 } .c4 { stroke: #db61a2; fill: #db61a2 } .c5 { stroke: #8b949e; fill: #8b949e }
.line { fill: none }
}
`

// plot draws a panel for each group of rows, with a line for each row.
func (t *table) plot() []byte {
	var panels [][]int // rows
	for i, s := range t.samples[0] {
		if i == 0 || s.panel != t.samples[0][i-1].panel {
			panels = append(panels, nil)
		}
		panels[len(panels)-1] = append(panels[len(panels)-1], i)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%[1]d\">\n<style>%[3]s</style>\n",
		2*panelWidth, (len(panels)+1)/2*panelHeight, plotStyle)
	for i, rows := range panels {
		fmt.Fprintf(&out, "<g transform=\"translate(%d %d)\">\n", i%2*panelWidth, i/2*panelHeight)
		t.panel(&out, rows)
		out.WriteString("</g>\n")
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// panel draws rows over the number of jobs, which grows tenfold from mark to mark.
func (t *table) panel(out *bytes.Buffer, rows []int) {
	greatest := 0.0
	for _, size := range t.samples {
		for _, row := range rows {
			greatest = max(greatest, size[row].value)
		}
	}
	step := niceStep(greatest / 4)
	steps := math.Ceil(greatest / step)
	y := func(value float64) float64 { return top + lineHeight*(1-value/(steps*step)) }
	x := func(i int) float64 { return left + lineWidth*(float64(i)+0.5)/float64(len(t.sizes)) }
	unit := ""
	first := t.samples[0][rows[0]]
	if _, after, ok := strings.Cut(first.format[strings.LastIndex(first.format, "%"):], " "); ok {
		unit = ", " + after
	}
	fmt.Fprintf(out, "<text class=\"title\" x=\"%d\" y=\"24\">%s</text>\n", left, html.EscapeString(first.panel+unit))
	for i := 0.0; i <= steps; i++ {
		fmt.Fprintf(out, "<path class=\"grid\" d=\"M%d %.1fh%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n",
			left, y(i*step), lineWidth, left-8, y(i*step)+4, i*step)
	}
	for i, n := range t.sizes {
		fmt.Fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x(i), top+lineHeight+18, thousands(n))
	}
	for color, row := range rows {
		var points []string
		for i, size := range t.samples {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(i), y(size[row].value)))
			fmt.Fprintf(out, "<circle class=\"c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", color, x(i), y(size[row].value))
		}
		fmt.Fprintf(out, "<polyline class=\"line c%d\" points=\"%s\"/>\n", color, strings.Join(points, " "))
		atX, atY := left+color%2*lineWidth/2, top+lineHeight+40+color/2*18
		fmt.Fprintf(out, "<circle class=\"c%d\" cx=\"%d\" cy=\"%d\" r=\"4\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
			color, atX+4, atY-4, atX+14, atY, html.EscapeString(t.samples[0][row].name))
	}
}

// niceStep is the smallest of 1, 2, 5, 10, 20 … that is not below.
func niceStep(below float64) float64 {
	if below <= 0 {
		return 1
	}
	magnitude := math.Pow(10, math.Floor(math.Log10(below)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*magnitude >= below {
			return factor * magnitude
		}
	}
	return 10 * magnitude
}

// The table and the plot show every figure at every size, and nothing else in the
// document changes.
func TestGrowth_IsWrittenBetweenItsMarks(t *testing.T) {
	var all table
	all.add(10_000, []sample{{"Rates", "work off", 0.5, "%.2f"}, {"Pages, p99", "newest <jobs>", 2, "1.0 / %.1f ms"}})
	all.add(1_000_000, []sample{{"Rates", "work off", 0.4, "%.2f"}, {"Pages, p99", "newest <jobs>", 3, "1.5 / %.1f ms"}})
	dir := t.TempDir()
	before := "# Title\n<!-- growth:begin -->\nold $1\n<!-- growth:end -->\nrest\n"
	if err := os.WriteFile(filepath.Join(dir, "benchmarks.md"), []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time in place of the first
		if err := all.write(dir); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.Join(dir, "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := "# Title\n<!-- growth:begin -->\n\n![How Redrive grows](growth.svg)\n\n| jobs | 10,000 | 1,000,000 |\n|---|---:|---:|\n" +
		"| **Rates** | | |\n| work off | 0.50 | 0.40 |\n| **Pages, p99** | | |\n| newest <jobs> | 1.0 / 2.0 ms | 1.5 / 3.0 ms |\n" +
		"\n<!-- growth:end -->\nrest\n"
	if string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	plot, err := os.ReadFile(filepath.Join(dir, "growth.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"newest &lt;jobs&gt;", "Pages, p99, ms", "1,000,000"} {
		if !bytes.Contains(plot, []byte(text)) {
			t.Errorf("the plot does not say %q", text)
		}
	}
}
