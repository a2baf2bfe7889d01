package server

import (
	"encoding/json"

	"redrive/internal/access"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
)

// The shapes of the API's answers as programs read them.

type queueShape struct {
	Name string `json:"name"`
	job.Totals
	States     job.Depths `json:"states"` // every status, also at zero
	Workers    int        `json:"workers"`
	Running    int        `json:"running"`
	DeadLetter bool       `json:"dead_letter"`
	Forward    string     `json:"forward,omitempty"` // the host to which dead letters are forwarded
	Oldest     string     `json:"oldest,omitempty"`
	PausedAt   string     `json:"paused_at,omitempty"`
	PausedBy   string     `json:"paused_by,omitempty"`
}

type policyShape struct {
	Name   string          `json:"name"` // as a job's policy or the page can name it
	Policy json.RawMessage `json:"policy"`
	TTR    string          `json:"ttr,omitempty"`
}

type operationShape struct {
	ID         int64           `json:"id"`
	Kind       operation.Kind  `json:"kind"`
	State      operation.State `json:"state"`
	Why        string          `json:"why,omitempty"`
	Filter     string          `json:"filter,omitempty"`
	Source     int64           `json:"relapsed_of,omitempty"`
	Until      string          `json:"until"`
	Rate       float64         `json:"rate"` // jobs a second; 0: as fast as possible
	Spread     string          `json:"spread,omitempty"`
	Canary     *int64          `json:"canary,omitempty"` // left out while it depends on the size of the scope
	Guard      bool            `json:"guard"`
	CreatedAt  string          `json:"created_at"`
	CreatedBy  string          `json:"created_by"`
	StartedAt  string          `json:"started_at,omitempty"`
	StartedBy  string          `json:"started_by,omitempty"`
	FinishedAt string          `json:"finished_at,omitempty"`
	Total      int64           `json:"total"`
	Pending    int64           `json:"pending"`
	Done       int64           `json:"done"`
	Skipped    int64           `json:"skipped"`
	Failed     int64           `json:"failed"`
	Succeeded  int64           `json:"succeeded"` // of those done
	Relapsed   int64           `json:"relapsed"`
	Dropped    int64           `json:"dropped"`
	Unsettled  int64           `json:"unsettled"`
	Left       string          `json:"left,omitempty"` // how long the rest takes at this rate
}

type itemShape struct {
	N       int64                `json:"n"`
	JobID   string               `json:"job_id,omitempty"`
	Type    string               `json:"type,omitempty"`
	Queue   string               `json:"queue,omitempty"`
	Run     int                  `json:"run"`
	State   operation.ItemState  `json:"state"`
	Code    operation.Skip       `json:"code,omitempty"`
	Why     string               `json:"why,omitempty"`
	Other   int64                `json:"other_operation,omitempty"`
	At      string               `json:"at,omitempty"`
	Outcome operation.RunOutcome `json:"outcome,omitempty"`
	EndedAt string               `json:"ended_at,omitempty"`
}

type sessionShape struct {
	ID      string      `json:"id"`
	User    string      `json:"user"`
	Role    access.Role `json:"role"`
	Address string      `json:"address,omitempty"`
	Created string      `json:"created_at"`
	Seen    string      `json:"seen_at"`
	Ends    string      `json:"ends_at"`
}

type replayShape struct {
	Run      int          `json:"run"`
	State    job.State    `json:"state"`
	Reason   retry.Reason `json:"reason,omitempty"`
	Attempts int          `json:"attempts"`
	At       string       `json:"at"`
	By       string       `json:"by"`
	Changed  bool         `json:"changed,omitempty"` // the next run has something otherwise
}

type bulkActShape struct {
	Operation int64          `json:"operation"`
	Kind      operation.Kind `json:"kind"`
	Run       int            `json:"run"`
	At        string         `json:"at"`
	By        string         `json:"by"`
}

type entryShape struct {
	Seq     int64  `json:"seq"`
	At      string `json:"at"`
	Actor   string `json:"actor"`
	Address string `json:"address,omitempty"`
	Action  string `json:"action"`
	Subject string `json:"subject,omitempty"`
	Filter  string `json:"filter,omitempty"`
	Count   int64  `json:"count"`
	Before  string `json:"before,omitempty"`
	After   string `json:"after,omitempty"`
	Hash    string `json:"hash,omitempty"`
}

type facetShape struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}
