// Package source holds the nouns of sources: queues that other programs own, whose
// dead letters Redrive shows, replays and discards.
//
// A source is mirrored, not browsed. Its dead letters become jobs of Redrive's own, so
// that lists, groups, filters, search, exports and operations work on them as on all
// others. The truth stays at the source: before each act it is asked, in the unit in
// which it changes its own data, and it acts only if the record is still exactly what
// the person saw.
//
//	scan    the dead records at the source are read, page by page
//	mirror  a new record becomes a job in the dead-letter queue; one that is no longer
//	        there is a job that is gone; one that was replayed and is there again
//	        is a run that failed again
//	ask     a person, or an operation, asks for a replay or a discard: a row of the
//	        ledger, in the transaction that moves the job
//	act     the ledger's rows are taken, noted as begun, carried out at the source, and
//	        settled with what it answered
//	settle  what had begun when the process ended is looked up at the source, and never
//	        carried out again without an answer
//	hear    where the system keeps what has succeeded, it is asked for the jobs that were
//	        replayed
//
// The job of a record is in a queue that no other job can be in: the record's queue, an
// at sign and the name of the source, as in "orders@shop". No worker of Redrive claims
// from it.
//
// The package does no input or output. A family (packages sqlsource, redissource
// and amqpsource) speaks with the systems of its kind, and a preset (package preset) says where one
// system keeps what.
package source

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// Record is a dead letter at a source, as it was read.
type Record struct {
	Key          string // names the record among all dead ones at the source at one time
	Lineage      string // names the job through its runs: a record that is dead again has the same one
	Place        string // where it is stored: a table, a list, a sorted set
	VersionToken string // what must not have changed when a user acts on the record
	Raw          []byte // the record as the source keeps it, where an act needs it; else nil

	Queue     string // that it was enqueued for; a replay goes there
	Type      string
	Payload   []byte // what the job was given
	Meta      []byte // a JSON object of what else the record says, or nil
	Error     job.ErrorInfo
	Trace     string
	Attempts  int       // as the source counts them, see the preset; 0 when it does not say
	Limit     int       // of attempts; 0 when it does not say
	FailedAt  time.Time // zero when the source does not say
	CreatedAt time.Time // zero when the source does not say
	History   []Failure // earlier failures, the oldest first, where the source keeps them
	Warnings  []string  // what a person should know before acting on it, in sentences
}

// Failure is one of the failures of a record before the last one.
type Failure struct {
	Number int
	At     time.Time
	Error  job.ErrorInfo
	Trace  string
}

// ReasonOf is why a record died, as far as its source says: it says as much only where it
// counts attempts up to a limit.
func ReasonOf(r *Record) retry.Reason {
	if r.Limit > 0 && r.Attempts >= r.Limit {
		return retry.AttemptsExhausted
	}
	return retry.ReasonUnknown
}

// Version tells a record from the one that was under its key before: it changes when the
// record dies again.
func (r *Record) Version() int64 {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(r.VersionToken), r.Raw, []byte(r.Place)} {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write(part)
	}

	return int64(binary.BigEndian.Uint64(h.Sum(nil)))
}

// FullName names a record where its key names others as well.
func (r *Record) FullName() string {
	if r.VersionToken == "" || r.VersionToken == r.Key {
		return r.Key
	}
	return r.Key + " (" + r.VersionToken + ")"
}

// Kind is what a user asks a source to do.
type Kind string

// The kinds of acts.
const (
	Replay  Kind = "replay"
	Discard Kind = "discard"
)

// Request is what a user asks of a source, as far as one source does it and another does
// not.
type Request struct {
	Kind   Kind
	Mode   Mode // of a replay
	Later  bool // it shall run at a time to come
	Edited bool // it shall have another payload

	Payload []byte // the other payload
}

// Request is what an act asks of its source.
func (a *Act) Request() Request {
	return Request{Kind: a.Kind, Mode: a.Mode, Later: !a.Due.IsZero(), Edited: a.Payload != nil, Payload: a.Payload}
}

// Mode is how a replay counts attempts, and as what the job runs.
type Mode string

// The modes of a replay.
const (
	Once  Mode = "once"  // as the source's own button does: most grant one more attempt
	Fresh Mode = "fresh" // attempts count from zero
	New   Mode = "new"   // as a new message: with an id of its own, and attempts count from zero
)

// State is how far an act has come.
type State string

// The states of an act. Asked and begun are under way; the others are how it ended.
const (
	Asked    State = "asked"    // written down, and nothing has happened at the source
	Begun    State = "begun"    // the source may have been told
	Done     State = "done"     // the source did it
	Gone     State = "gone"     // the record was no longer there
	Changed  State = "changed"  // the record is not the one that the person saw: it has died again
	Replaced State = "replaced" // the source has another job that excludes this one
	Refused  State = "refused"  // the source said no, or the rights do not allow it
	Unknown  State = "unknown"  // it cannot be told whether it happened
	NotTold  State = "untold"   // of a discard: the source was not attached, so it was not told
)

// Open reports whether the act is under way.
func (s State) Open() bool { return s == Asked || s == Begun }

// Act is a row of the ledger: one act on one record.
type Act struct {
	ID      int64
	Kind    Kind
	Mode    Mode
	State   State
	Due     time.Time // before which the replayed job shall not run; zero: at once
	Payload []byte    // that it shall have; nil: as it is
	Record            // without what only pages show
	JobID   string
	Run     int // that the act began; of a discard: the one that it ends
	AskedAt time.Time
	EndedAt time.Time
	By      string
	Bulk    int64  // the operation, 0: a person asked
	Why     string // what the source answered, when it did not do it
}

// End is how an act of a kind can end.
type End struct {
	Kind  Kind
	State State
}

// Result is how an act ended.
type Result struct {
	ID    int64
	State State
	Why   string
}

// Mirrored is what is known of the record of a job.
type Mirrored struct {
	Record            // without what its job says
	Present bool      // at its source, as far as it is known
	SeenAt  time.Time // when it was read first in this run
	Acts    []Act     // the newest first
}

// Profile is what people should know of the systems of one kind, in sentences.
type Profile struct {
	Title    string          `yaml:"title"`
	Version  string          `yaml:"version"`  // those that are known
	Attempts string          `yaml:"attempts"` // what the system counts
	Modes    map[Mode]string `yaml:"modes"`    // what a replay does
	Delays   bool            `yaml:"delays"`   // a replay can wait for a time to come
	Edits    bool            `yaml:"edits"`    // a replay can have another payload
	Takes    []string        `yaml:"takes"`    // which kinds of JSON that can be: object, array; empty: any payload
	Grants   []string        `yaml:"grants"`
	Hazards  []string        `yaml:"hazards"`
	Blank    []string        `yaml:"blank"` // what the system does not keep
}

// Health is how a source fares.
type Health struct {
	Name      string
	Preset    string
	Profile   Profile
	Allow     []Kind
	Every     time.Duration // between two looks
	Report    Report
	Ready     bool      // it was reached, and everything that is there was read once
	Reading   int       // records that the reading under way has met
	Polled    time.Time // when it was looked at last; zero: never
	Took      time.Duration
	Next      time.Time     // when it is looked at next; zero while it is
	Problem   string        // why the last look failed; empty: it did not
	Own       bool          // the problem is one of this side: the source has answered
	Moved     bool          // the problem is that its URL names another place than the one that its jobs are from
	Since     time.Time     // since when looks fail
	Acts      map[End]int64 // that ended since it was attached
	Succeeded int64         // replayed jobs that the source said have succeeded, since then

	Quarantined []Quarantined // the newest first
	Beyond      int           // records in quarantine that are too many to be listed
}

// Quarantined is a record that is at a source and cannot be taken over. All others of
// the source are, and this one is as soon as that is possible.
type Quarantined struct {
	Refusal
	Since time.Time // when it was met first since the source was attached or changed
}

// Unattached is what is left of a source that redrive.yaml no longer names.
type Unattached struct {
	Name        string
	DeadLetters int64 // dead letters
	Waiting     int64 // acts that were asked for before: they are carried out when it is attached again
}

// Standing is how well what is shown of a source is known to be true.
type Standing string

// The standings of a source.
const (
	Starting Standing = "starting" // not everything that is there was read yet
	Current  Standing = "current"
	Late     Standing = "late"    // the last look is longer ago than it should be
	Blocked  Standing = "blocked" // it answers, and this side cannot keep what it says
	Down     Standing = "down"    // it does not answer
	Moved    Standing = "moved"   // its URL names another place than the one that its jobs are from, and is not used
)

// grace is how much later than it should be a look may end.
const grace = 5 * time.Second

// Standing is how well the source is known at a time.
func (h Health) Standing(now time.Time) Standing {
	switch {
	case h.Problem != "" && h.Moved:
		return Moved
	case h.Problem != "" && h.Own:
		return Blocked
	case h.Problem != "":
		return Down
	case !h.Ready:
		return Starting
	case now.Sub(h.Polled) > 2*h.Every+grace:
		return Late
	}

	return Current
}

// Quarantine is how many records are in quarantine.
func (h Health) Quarantine() int { return len(h.Quarantined) + h.Beyond }

// Unsupported says what of a request the system cannot do; empty when it does all.
func (p Profile) Unsupported(w Request) string {
	switch {
	case w.Kind != Replay:
		return ""
	case w.Mode != "" && p.Modes[w.Mode] == "":
		return "it has no mode " + string(w.Mode)
	case w.Later && !p.Delays:
		return "it has no delay for that: replay the job at once"
	case w.Edited && !p.Edits:
		return "its payload cannot be changed there"
	case w.Edited && !p.takes(w.Payload):
		return "its payload there must be a JSON " + strings.Join(p.Takes, " or ")
	}

	return ""
}

// takes reports whether a payload is of a kind that the system takes. Whether it is JSON
// at all was looked at before.
func (p Profile) takes(payload []byte) bool {
	kind := ""
	switch text := bytes.TrimSpace(payload); {
	case len(p.Takes) == 0:
		return true
	case bytes.HasPrefix(text, []byte("{")):
		kind = "object"
	case bytes.HasPrefix(text, []byte("[")):
		kind = "array"
	}

	return slices.Contains(p.Takes, kind)
}

// Allows reports whether an act is allowed.
func (h Health) Allows(k Kind) bool { return slices.Contains(h.Allow, k) }

// Page is a part of the dead records at a source. Reading a page says little more than
// which records are there and whether they have changed: most of them are known.
type Page struct {
	Records []Record
	Refused []Refusal     // records of this part that are not among the others
	Next    string        // where the next part begins; empty after the last one
	Read    func(*Record) // reads the rest of a record, whose mark stays the same; nil if nothing is missing
}

// Complete reads the rest of records of the page.
func (p Page) Complete(records []Record) {
	if p.Read == nil {
		return
	}

	for i := range records {
		p.Read(&records[i])
	}
}

// Report is what a source says about itself.
type Report struct {
	Version  string   // of the system or its schema, as far as it can be told
	Sees     []string // what can be read, in sentences
	May      []Kind   // what the source's rights allow
	Tells    bool     // it can be asked which jobs have succeeded
	Absent   bool     // nothing of the system is there yet
	Shared   string   // why the first record with a key is taken over and no other that has the same; empty: none has
	Warnings []string
}

// ReplayedJob is a job that was given back to its source. Nothing is known since of the run
// that began then.
type ReplayedJob struct {
	Seq    int64 // of the job
	Run    int
	Since  time.Time
	Record // where it was, and under which key
}

// Success is a run of which its source says that it succeeded.
type Success struct {
	ReplayedJob
	At       time.Time // zero when the source does not say
	Attempts int       // as the source counts them; 0 when it does not say
}

// Origin is an attached system. Its methods may be called by one goroutine at a time,
// and end with their contexts. An error means that nothing is known: an act may have
// happened, and is looked up with Find.
type Origin interface {
	// Check looks whether the system is the one that the preset describes, and what it
	// allows.
	Check(ctx context.Context) (Report, error)
	// Scan reads the records after a place, which is empty or came with the page before,
	// the newest first where the system knows an order.
	Scan(ctx context.Context, after string, limit int) (Page, error)
	// Act does to the records what the acts say, each alone: a result for each act. One can
	// be Asked: then the source was not told, because there was an error, or because it
	// cannot tell yet whether the record has left.
	Act(ctx context.Context, acts []Act) ([]Result, error)
	// Find says for each act whether its record is still there as it was: then the
	// result is Asked, or Unknown where an unchanged record does not show whether an act
	// that had begun took place. Gone and Changed say that the record is not there or is
	// another one, and Done that the source can tell that the job is under way again. An
	// act has no result if the source cannot tell yet, but will after some time.
	Find(ctx context.Context, acts []Act) ([]Result, error)
	// Succeeded says which of these jobs the system keeps as ones that have succeeded. It is
	// called only if the report of the check says that the system tells.
	Succeeded(ctx context.Context, handed []ReplayedJob) ([]Success, error)
	Close() error
}

// NotAttempted are the results of acts of which a source was told nothing.
func NotAttempted(acts []Act) (all []Result) {
	for _, a := range acts {
		all = append(all, Result{ID: a.ID, State: Asked})
	}
	return all
}

// MaxRecord is how many bytes a record may have. A larger one is quarantined.
const MaxRecord = 8_000_000

// Size is a number of bytes in words.
func Size(n int64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%d MB", n/1_000_000)
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1_000_000)
	case n >= 1000:
		return fmt.Sprintf("%d kB", n/1000)
	}

	return fmt.Sprintf("%d bytes", n)
}

// Sizes are a number of bytes and the limit that it exceeds, in words. Where both would round
// to the same words, both are exact.
func Sizes(n, limit int64) (size, most string) {
	size, most = Size(n), Size(limit)
	if size == most {
		size, most = fmt.Sprintf("%d bytes", n), fmt.Sprintf("%d bytes", limit)
	}

	return size, most
}

// Refusal is a record that is at a source and could not be taken over.
type Refusal struct {
	Key string
	Why string // a sentence
}

// TooLarge is the refusal of a record of so many bytes.
func TooLarge(key string, size int64) Refusal {
	has, limit := Sizes(size, MaxRecord)
	return Refusal{key, fmt.Sprintf("It has %s, which is larger than the limit of %s for a record.", has, limit)}
}

// MaxName is how long the name of a source may be.
const MaxName = 32

var name = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// CheckName returns a *invalid.Error unless s can name a source.
func CheckName(s string) error {
	if len(s) > MaxName || !name.MatchString(s) {
		return invalid.Errorf("name", "%q is not a source name: use lower-case letters, digits and dashes, at most %d", clip.Text(s, 64), MaxName)
	}
	return nil
}

// ReturnedAfter is when it is said of a job that was given back to its source that it is
// not back.
const ReturnedAfter = 10 * time.Minute

// Returned reports whether a job was given back to its source that long ago, or was to run
// there, and nothing is known since. It may have succeeded, still wait, or be gone: only the
// source knows.
func Returned(j job.Job, now time.Time) bool {
	return AtSource(j) && !now.Before(ReturnsAt(j))
}

// AtSource reports whether a job was given back to its source, of which nothing is known since.
func AtSource(j job.Job) bool { return j.Changed().AtSource }

// AddedAt is when a job of a source was seen first, to the millisecond: its id was made then,
// and begins with that time. It is zero if the id does not say it.
func AddedAt(j job.Job) time.Time {
	id, err := job.ParseID(j.ID)
	if err != nil || id[14] != '7' { // the version of the id
		return time.Time{}
	}

	milliseconds, err := strconv.ParseInt(id[:8]+id[9:13], 16, 64)
	if err != nil { // unreachable: an id is hexadecimal
		return time.Time{}
	}

	return time.UnixMilli(milliseconds).UTC()
}

// InDoubt reports whether it is unknown whether the source of a job took its replay.
func InDoubt(j job.Job) bool { return j.State == job.Returned && j.Unbegun }

// ReturnsAt is when it will be said of a job that its source has that it is not back.
func ReturnsAt(j job.Job) time.Time {
	since := j.ChangedAt
	if j.RunAt.After(since) {
		since = j.RunAt
	}

	return since.Add(ReturnedAfter)
}

// Overflow is the queue of a source's jobs whose own queues would be too many.
func Overflow(source string) string { return Queue(source, "other-queues") }

// maxQueue is how long the name of a queue may be.
const maxQueue = 128

// Queue is the queue of a source's jobs from one of its queues. What no name of a queue
// may have is written as an underscore, and left out at its beginning, where no name may
// have one.
func Queue(source, queue string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:-", r) {
			return r
		}
		return '_'
	}, queue)
	clean = cmp.Or(strings.TrimLeft(clean, "._:-"), "default")

	return clean[:min(len(clean), maxQueue-len(source)-1)] + "@" + source
}
