package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"redrive/internal/job"
)

// maxIDs is the number of rows that one page can follow.
const maxIDs = 200

// subscription is what a page shows.
type subscription struct {
	ids    []string
	filter job.Filter
	newer  bool // count what enters the filter
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
		Newer bool `json:"newer"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return subscription{}, errors.New("the message is not a JSON object of the right shape")
	}
	if m.Type != "subscribe" {
		return subscription{}, errIgnored
	}
	ids, err := checkIDs(m.IDs)
	s := subscription{ids, job.Filter{Status: m.Filter.State, Queue: m.Filter.Queue, Type: m.Filter.Type}, m.Newer}
	return s, errors.Join(err, s.filter.Check())
}

// checkIDs returns the ids in their canonical form, each once.
func checkIDs(ids []string) ([]string, error) {
	if len(ids) > maxIDs {
		return nil, fmt.Errorf("%d ids, at most %d are accepted", len(ids), maxIDs)
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

type countersMessage struct {
	Type string `json:"type"`
	Seq  int64  `json:"seq"`
	job.Totals
	States map[job.Status]int64 `json:"states"`
}

func newCounters(s job.Snapshot) countersMessage {
	m := countersMessage{"counters", s.Seq, s.Totals, map[job.Status]int64{}}
	for _, status := range job.Statuses() {
		m.States[status] = s.Depths[status]
	}
	return m
}

type newerMessage struct {
	Type  string `json:"type"`
	Count int    `json:"count"`
}

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
}

func newRow(c job.Change) row {
	return row{
		c.ID, c.State, c.Status(), c.Run, c.Attempts, c.MaxAttempts,
		job.FormatTime(c.RunAt), job.FormatTime(c.ChangedAt),
	}
}

// poll answers what a websocket would say now.
func (h *Hub) poll(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		writeProblem(w, http.StatusMethodNotAllowed, "method_not_allowed", "", "use GET")
		return
	}
	var given []string
	if list := r.URL.Query().Get("ids"); list != "" {
		given = strings.SplitN(list, ",", maxIDs+1)
	}
	ids, err := checkIDs(given)
	if err != nil {
		writeProblem(w, http.StatusBadRequest, "invalid_value", "ids", err.Error())
		return
	}
	changes, err := h.look(r.Context(), ids)
	if err != nil {
		h.opts.Log.Warn("live rows could not be read", "error", err)
		w.Header().Set("Retry-After", "5")
		writeProblem(w, http.StatusServiceUnavailable, "busy", "", "the rows could not be read in time; try again")
		return
	}
	answer := struct {
		Counters json.RawMessage `json:"counters"`
		Jobs     []row           `json:"jobs"`
	}{h.counters().data, []row{}}
	for _, change := range changes {
		answer.Jobs = append(answer.Jobs, newRow(change))
	}
	writeJSON(w, http.StatusOK, answer)
}

func writeProblem(w http.ResponseWriter, status int, code, field, message string) {
	var answer struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Field   string `json:"field,omitempty"`
		} `json:"error"`
	}
	answer.Error.Code, answer.Error.Field, answer.Error.Message = code, field, message
	writeJSON(w, status, answer)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = bytes.NewReader(append(encode(v), '\n')).WriteTo(w) // an error means that the peer has left
}
