package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/stats"
	"redrive/internal/wire"
)

// MaxIDs is how many rows one page can follow.
const MaxIDs = 200

// List is a list of jobs as a page shows it.
type List struct {
	Filter filter.Filter
	First  filter.Cursor // the place of the first row of the page; zero: it has no rows
}

// subscription is what a page shows, and wants to be told of.
type subscription struct {
	ids   []string // of the rows
	list  List
	newer bool // count the jobs that enter the list
}

// errIgnored is the error for a message of a type that this version does not know.
var errIgnored = errors.New("unknown type of message")

// decode reads a message of a client. The error is errIgnored for a type that is not known.
func decode(data []byte) (subscription, error) {
	var m struct {
		Type   string   `json:"type"`
		IDs    []string `json:"ids"`
		Filter struct {
			State job.Status `json:"state"`
			Queue string     `json:"queue"`
			Type  string     `json:"type"`
		} `json:"filter"`
		First string `json:"first"`
		Newer bool   `json:"newer"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return subscription{}, errors.New("the message is not a JSON object of the right shape")
	}

	if m.Type != "subscribe" {
		return subscription{}, errIgnored
	}

	ids, err := checkIDs(m.IDs)
	first, wrong := filter.ParseCursor(m.First)
	s := subscription{ids, List{filter.Filter{Status: m.Filter.State, Queue: m.Filter.Queue, Type: m.Filter.Type}, first}, m.Newer}

	return s, errors.Join(err, wrong, s.list.Filter.Check())
}

// checkIDs returns the ids in their canonical form, each once. It refuses more than MaxIDs.
func checkIDs(ids []string) ([]string, error) {
	if len(ids) > MaxIDs {
		return nil, fmt.Errorf("%d ids, at most %d are accepted", len(ids), MaxIDs)
	}

	var all []string
	seen := map[string]bool{}
	for _, id := range ids {
		id, err := job.ParseID(id)
		if err != nil {
			return nil, err
		}

		if !seen[id] {
			seen[id] = true
			all = append(all, id)
		}
	}

	return all, nil
}

// countersMessage has the totals and the number of jobs in each status, over all queues.
type countersMessage struct {
	Type string `json:"type"`
	Seq  int64  `json:"seq"`
	stats.Totals
	States     map[job.Status]int64 `json:"states"`
	OpenGroups int64                `json:"open_groups"`
}

func newCounters(s stats.Snapshot) countersMessage {
	m := countersMessage{"counters", s.Seq, s.Totals, map[job.Status]int64{}, s.OpenGroups}
	for _, status := range job.Statuses() {
		m.States[status] = s.Depths[status]
	}

	return m
}

// pageMessage tells a page to load itself again, because something changed that is neither a job
// nor a count.
type pageMessage struct {
	Type string `json:"type"`
}

// newerMessage says how many jobs come before the first row of a list.
type newerMessage struct {
	Type  string `json:"type"`
	Count int    `json:"count"`
	More  bool   `json:"more"` // there are more than Count
}

// jobsMessage says how jobs are now.
type jobsMessage struct {
	Type string `json:"type"`
	Jobs []row  `json:"jobs"`
}

// row is what a message says about a job.
type row struct {
	ID          string     `json:"id"`
	State       job.State  `json:"state"`
	Status      job.Status `json:"status"`
	Run         int        `json:"run"`
	Attempts    int        `json:"attempts"`
	MaxAttempts int        `json:"max_attempts"`
	RunAt       string     `json:"run_at,omitempty"`
	ChangedAt   string     `json:"changed_at,omitempty"`
	Source      string     `json:"source,omitempty"` // the source that has the job now
}

func newRow(c job.Change) row {
	r := row{
		ID: c.ID, State: c.State, Status: c.Status(), Run: c.Run, Attempts: c.Attempts, MaxAttempts: c.MaxAttempts,
		RunAt: wire.FormatTime(c.RunAt), ChangedAt: wire.FormatTime(c.ChangedAt),
	}
	if c.AtSource {
		r.Source = c.Source
	}

	return r
}

// Poll returns what a websocket would say now, for a page without one: a JSON object with the
// totals, the jobs with these ids, and the number of jobs that are newer than the first row of a
// list. A list without a first row has no such number. The caller has checked that the ids are
// canonical and not more than MaxIDs.
func (h *Hub) Poll(ctx context.Context, ids []string, list List) ([]byte, error) {
	changes, err := h.look(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read the live rows: %w", err)
	}

	answer := struct {
		Counters json.RawMessage `json:"counters"`
		Jobs     []row           `json:"jobs"`
		Newer    *newerMessage   `json:"newer,omitempty"`
	}{h.counters().data, []row{}, nil}

	if list.First != (filter.Cursor{}) {
		newer, err := h.count(ctx, list)
		if err != nil {
			return nil, fmt.Errorf("count what is newer: %w", err)
		}

		answer.Newer = &newer
	}

	for _, change := range changes {
		answer.Jobs = append(answer.Jobs, newRow(change))
	}

	return encode(answer), nil
}
