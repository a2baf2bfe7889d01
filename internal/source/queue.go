package source

import (
	"cmp"
	"encoding/json"
	"strings"

	"redrive/internal/job"
)

// WithQueue adds the name that a queue has at its source to the metadata of a job, under a
// name that these do not have, if the queue of the job does not say it. Metadata that are no
// JSON object stay as they are.
func WithQueue(meta []byte, queue, atSource string) []byte {
	if atSource == "" || nameIn(queue) == atSource {
		return meta
	}

	members := map[string]json.RawMessage{}
	if len(meta) > 0 && json.Unmarshal(meta, &members) != nil || members == nil {
		return meta
	}

	name := "queue"
	for members[name] != nil {
		name = "source_" + name
	}

	value, err := json.Marshal(atSource)
	if err != nil {
		return meta
	}

	members[name] = value

	together, err := json.Marshal(members)
	if err != nil {
		return meta
	}

	return together
}

// QueueAtSource is the name that the queue of a job has at its source, as WithQueue has
// noted it.
func QueueAtSource(queue string, meta []byte) string {
	members := map[string]json.RawMessage{}
	if len(meta) == 0 || json.Unmarshal(meta, &members) != nil {
		return nameIn(queue)
	}

	// The last of these names is the one that was added. Another member of the record can
	// have it when none was: that says of another queue.
	noted := ""
	for name := "queue"; members[name] != nil; name = "source_" + name {
		var text string
		if json.Unmarshal(members[name], &text) == nil {
			noted = text
		}
	}

	if name := job.SourceOf(queue); noted != "" && (queue == Overflow(name) || queue == Queue(name, noted)) {
		return noted
	}

	return nameIn(queue)
}

// nameIn is the name of a queue of a source without the name of the source.
func nameIn(queue string) string {
	if at := strings.LastIndexByte(queue, '@'); at >= 0 {
		return queue[:at]
	}
	return queue
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
