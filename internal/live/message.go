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

// MaxIDs is the number of rows that one page can follow.
const MaxIDs = 200

// List is a list of jobs as a page shows it.
type List struct {
	Filter filter.Filter
	First  filter.Cursor // the place of its first row
}

// subscription is what a page shows.
type subscription struct {
	ids   []string
	list  List
	newer bool // count what enters the list
}

// errIgnored is a message that this version does not know.
var errIgnored = errors.New("unknown type of message")

// decode reads a message of a client.
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

// checkIDs returns the ids in their canonical form, each once.
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

// countersMessage says how many jobs there are, in all and by queue.
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

// pageMessage says that something changed that is neither a job nor a count: the page
// is to be drawn again.
type pageMessage struct {
	Type string `json:"type"`
}

// newerMessage says how many jobs stand before the first row of a list.
type newerMessage struct {
	Type  string `json:"type"`
	Count int    `json:"count"`
	More  bool   `json:"more"` // it is more than that
}

// jobsMessage says how jobs stand.
type jobsMessage struct {
	Type string `json:"type"`
	Jobs []row  `json:"jobs"`
}

type row struct {
	ID          string     `json:"id"`
	State       job.State  `json:"state"`
	Status      job.Status `json:"status"`
	Run         int        `json:"run"`
	Attempts    int        `json:"attempts"`
	MaxAttempts int        `json:"max_attempts"`
	RunAt       string     `json:"run_at,omitempty"`
	ChangedAt   string     `json:"changed_at,omitempty"`
	Source      string     `json:"source,omitempty"` // that has the job
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

// Poll is the answer to those who poll: what a websocket would say now of the
// totals, of these jobs and of what is newer than a list, as a JSON object. Of
// ids, which are canonical, it takes up to MaxIDs; without a first row nothing
// is newer.
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
