package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// sample is the median of a few figures, and the range that they are in.
type sample struct{ median, least, most float64 }

func sampleOf(figures []float64) sample {
	sorted := slices.Sorted(slices.Values(figures))
	n := len(sorted)
	return sample{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}

// rate prints rates with a comma at the thousands.
func rate(f float64) string {
	n := int(f + 0.5)
	if n < 1000 {
		return fmt.Sprint(n)
	}

	return fmt.Sprintf("%s,%03d", rate(float64(n/1000)), n%1000)
}

// ratio prints two digits that matter.
func ratio(f float64) string {
	if f < 10 {
		return fmt.Sprintf("%.2g", f)
	}
	return fmt.Sprintf("%.0f", f)
}

func (s sample) print(format func(float64) string) string {
	return fmt.Sprintf("%s (%s–%s)", format(s.median), format(s.least), format(s.most))
}

// ratios are the rates of the first system divided by a peer's, round by round.
func (b *bench) ratios(workload, peer int) (all []float64) {
	own := b.rates[cell{workload, 0}]
	for round, rate := range b.rates[cell{workload, peer}] {
		all = append(all, own[round]/rate)
	}

	return all
}

// report is the section of the document: the ratios, the rates, the machine and
// the settings.
func (b *bench) report() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%[1]s : peer, above 1 where %[1]s is faster, **bold** where the peer is. "+
		"Median of %[2]d rounds, and the range.\n\n", b.systems[0].Name, b.rounds)
	b.table(&s, b.systems[1:], func(w, system int) string {
		all := b.ratios(w, system+1)
		if len(all) == 0 {
			return "–"
		}

		if r := sampleOf(all); r.median < 1 {
			return "**" + r.print(ratio) + "**"
		} else {
			return r.print(ratio)
		}
	})
	fmt.Fprintf(&s, "\nThe same as rates a second (jobs; in the last row executions):\n\n")
	b.table(&s, b.systems, func(w, system int) string {
		all := b.rates[cell{w, system}]
		if len(all) == 0 {
			return "–"
		}

		return sampleOf(all).print(rate)
	})
	fmt.Fprintf(&s, "\nThe machine: %s, %s; the disk syncs (`fdatasync` after 4 kB) %s times a second.\n",
		machine(), runtime.Version(), sampleOf(b.syncs).print(rate))
	fmt.Fprintf(&s, "\nThe workloads: jobs carry %d bytes of JSON and do nothing. %s jobs wait when a work-off starts, "+
		"and what the database says is finished after %.0f seconds counts; %s jobs fail twice each and succeed then, and are retried at once. "+
		"A caller's first call is not measured. "+
		"Each measurement has an empty database of its own.\n\nThe settings:\n\n",
		payloadSize, rate(float64(b.size.Backlog)), b.size.WorkOff.Seconds(), rate(float64(b.size.Failing)))

	for _, system := range b.systems {
		fmt.Fprintf(&s, "- **%s**: %s\n", system.Name, system.Settings)
	}

	return s.String()
}

// table prints a row for each workload and a column for each system.
func (b *bench) table(s *strings.Builder, columns []System, field func(workload, system int) string) {
	s.WriteString("| |")

	for _, system := range columns {
		fmt.Fprintf(s, " %s |", system.Name)
	}

	s.WriteString("\n|---|" + strings.Repeat("---:|", len(columns)) + "\n")

	for w, workload := range b.workloads {
		fmt.Fprintf(s, "| %s |", workload.Name)

		for i := range columns {
			fmt.Fprintf(s, " %s |", field(w, i))
		}

		s.WriteString("\n")
	}
}

// machine names the cores and the kernel.
func machine() string {
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		kernel = []byte("an unknown version")
	}

	version, _, _ := bytes.Cut(bytes.TrimSpace(kernel), []byte("-")) // the rest is the distribution's

	return fmt.Sprintf("%d cores, Linux %s", runtime.NumCPU(), version)
}

// diskSyncs returns how often a second the disk takes 4 kB permanently, as a commit
// needs it.
func diskSyncs(path string) (float64, error) {
	const n, page = 200, 4096

	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()

	data := bytes.Repeat([]byte{1}, page)
	start := time.Now()

	for i := range n {
		if _, err := f.WriteAt(data, int64(i*page)); err != nil {
			return 0, err
		}

		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, err
		}
	}

	return n / time.Since(start).Seconds(), nil
}

// Between these lines of the document stands what this program writes.
const (
	sectionBegin = "<!-- peers:begin -->\n"
	sectionEnd   = "<!-- peers:end -->"
)

// writeSection replaces what is between the markers of a document.
func writeSection(path, section string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}

	before, rest, begins := strings.Cut(string(text), sectionBegin)
	_, after, ends := strings.Cut(rest, sectionEnd)
	if !begins || !ends {
		return fmt.Errorf("%s lacks %q or %q", path, strings.TrimSpace(sectionBegin), sectionEnd)
	}

	return os.WriteFile(path, []byte(before+sectionBegin+section+sectionEnd+after), 0o644)
}
