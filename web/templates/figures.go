package templates

import (
	"redrive/internal/job"

	"redrive/web/templates/format"
)

// sparkLine draws values as the points of a line in a box of 100 by 18, the
// oldest on the left. It is empty when there is nothing to draw.
func sparkLine(values []int64) string {
	if len(values) < 2 {
		return ""
	}
	const floor, ceiling = 17.0, 2.0
	var most int64 = 1
	for _, v := range values {
		most = max(most, v)
	}
	points := make([]byte, 0, 10*len(values))
	for i, v := range values {
		if i > 0 {
			points = append(points, ' ')
		}
		points = format.AppendDecimal(points, 100*float64(i)/float64(len(values)-1), 1)
		points = append(points, ',')
		points = format.AppendDecimal(points, floor-(floor-ceiling)*float64(max(v, 0))/float64(most), 1)
	}
	return string(points)
}

// segment is a part of a bar, in percent of its width.
type segment struct {
	class    string
	x, width string
	seam     bool // a hairline before it
}

// live lists the states of jobs that have not ended, in the order of bars.
func live() []job.State {
	return []job.State{job.Scheduled, job.Pending, job.Available, job.Active, job.Retryable}
}

// heading names a state over a column of numbers.
func heading(s job.State) string {
	if s == job.Scheduled {
		return "Sched."
	}
	return format.UpperFirst(string(s))
}

// segments divides a bar among the live states of a queue.
func segments(d job.Depths) []segment {
	var total int64
	for _, s := range live() {
		total += d[job.Status(s)]
	}
	var all []segment
	x := 0.0
	for _, s := range live() {
		n := d[job.Status(s)]
		if n == 0 {
			continue
		}
		width := 100 * float64(n) / float64(total)
		all = append(all, segment{"fill is-" + string(s), format.Percent(x), format.Percent(width), x > 0})
		x += width
	}
	return all
}

// sum adds one counter over time.
func sum(values []int64) (total int64) {
	for _, v := range values {
		total += v
	}
	return total
}

// series picks one counter out of totals over time.
func series(totals []job.Totals, pick func(job.Totals) int64) []int64 {
	values := make([]int64, len(totals))
	for i, t := range totals {
		values[i] = pick(t)
	}
	return values
}
