package preset

// Redis is where a system keeps its dead letters in Redis.
//
// A key is written with names in braces: those under names, {queue} and {id}. The key
// dead holds either the record itself or the id of a hash that holds it.
//
// The acts are scripts in Lua, each the one element of its list. A script has these
// locals, and returns a number:
//
//	id       the member of the key dead: the id, or the exact bytes of the record
//	witness  of the record, as it was read: the field of the hash, or its exact bytes
//	clean    the bytes for the next run, made by the codec
//	queue    that the record goes to
//	now      nanoseconds since 1970, as a text
//	iso      the same instant, as in 2026-11-22T11:01:23.591394Z
//	due      milliseconds since 1970, when the job shall run; empty: at once
//	payload  that the job shall have, where its record is a hash; empty: as it is
//
// and the keys under keys, each by its name. All keys of a script have to be there, so
// that a Cluster can be asked whether they are together. The numbers are [Done] and its
// neighbours. A script writes to the work place before it removes from the dead one: when
// Redis refuses a command in between, the job is there twice, not lost.
type Redis struct {
	Least     string            `yaml:"least"`  // version of Redis
	Expect    map[string]string `yaml:"expect"` // keys and their types; one that is absent is no fault
	Queues    Queues            `yaml:"queues"`
	Dead      string            `yaml:"dead"`      // the key in which the dead letters of a queue are
	Type      string            `yaml:"type"`      // of that key: a list, the newest last, or a zset, the newest with the highest score
	Succeeded string            `yaml:"succeeded"` // the sorted set in which the ids are of jobs that have succeeded; empty: there is none
	Newest    string            `yaml:"newest"`    // of a list: first when the newest is there
	Target    string            `yaml:"target"`    // the queue of a record, when neither its key nor the record says it
	Hash      *Hash             `yaml:"hash"`      // nil: the record itself is in the key dead
	Keys      map[string]string `yaml:"keys"`      // of the scripts
	Writes    Writes            `yaml:"writes"`
}

// Queues says how the names of queues are found. Without any, there is one place for all.
type Queues struct {
	Set    string `yaml:"set"`    // the key of a set of all queues
	Member string `yaml:"member"` // what a member of the set looks like, unless it is the name of the queue
	Scan   string `yaml:"scan"`   // a key that each queue has
	Type   string `yaml:"type"`   // of the key under scan
	Field  string `yaml:"field"`  // of that key, a hash: the version of the system that writes it
	Match  string `yaml:"match"`  // a regular expression for the versions that are known
}

// Hash is a record that is kept as a hash, or in a field of one.
type Hash struct {
	Key          string   `yaml:"key"`
	Fields       []string `yaml:"fields"`        // what the codec reads
	Raw          string   `yaml:"raw"`           // the field that is the whole record, or none
	VersionToken string   `yaml:"version_token"` // the field that changes when the job dies again; none: the record
	State        string   `yaml:"state"`         // a field that says how the job fares; the version token, if a job that is under way has none
	Dead         []string `yaml:"dead"`          // its values for a job that is not under way
	Stream       string   `yaml:"stream"`        // the key of a stream whose last entry the codec reads too
}

// Writes are the commands with which a script writes, each with the name of a key, as in
// "ZREM dead". Whether the user may run them is asked before the first one.
type Writes struct {
	Replay  []string `yaml:"replay"`
	Discard []string `yaml:"discard"`
}

// Work is a queue in Redis to which dead letters of a database go. Its script has the
// locals of the others, and those under values in its keys; its id names the dead letter
// together with its version token. The record is locked while the script runs, and removed only
// after that. The script does nothing the second time: it is repeated when the database
// has failed.
type Work struct {
	Keys   map[string]string `yaml:"keys"`
	Writes []string          `yaml:"writes"`
	Push   string            `yaml:"push"`
}

// Refusal is why a queue does not take a job: it said so, and nothing was changed.
type Refusal struct{ Why string }

func (r *Refusal) Error() string { return r.Why }

// What a script returns.
const (
	Done     = 1
	Gone     = 0  // the record is no longer there
	Changed  = -1 // the version token is another one
	Missing  = -2 // the hash of the record is missing
	Refused  = -3 // the system does not allow it, for the reason under refused
	Replaced = -4 // another job excludes this one
)
